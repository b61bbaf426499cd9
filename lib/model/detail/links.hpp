/// Exchange of a transformer with the ranks that hold the rest of its model.
#pragma once
#include <memory>
#include <vector>

#include "base/range.hpp"
#include "memory/views.hpp"
#include "ops/context.hpp"
#include "ops/side_stream.hpp"
#include "parameters/share.hpp"

namespace tern::model::detail {

template <class T>
class Links {
 public:
  /// `training`: sends are deferred, see below. The first exchange throws InternalError if a share
  /// of a model has no mesh.
  Links(const Share& share, bool training) : share_(share), training_(training) {}

  const Share& share() const { return share_; }

  /// Sums over tensor ranks, in place. V is T or Accumulate<T>.
  template <class V>
  void sum(const ops::Context&, Matrix<V> values) const;

  // Sums over tensor ranks that overlap with what the context is given between begin and end. Two
  // tensor ranks exchange their parts (comm/part_exchange.hpp); others, and two that cannot, sum at
  // the beginning.

  /// Rows of (N, D) that are summed at once.
  struct Piece {
    Range rows;
    std::size_t number;  // of its round
    bool last;           // of its round
  };
  /// From now on two tensor ranks exchange parts, into `received` (N, D), if they can. Collective.
  void exchange_into(Matrix<T> received);
  /// A round over all rows: two halves, in whole tiles of products, if parts are exchanged.
  std::vector<Piece> pieces(std::size_t rows) const;
  static Piece all_rows(std::size_t rows) { return {{0, rows}, 0, true}; }
  /// `part` (N, D): this rank's.
  void begin_sum(const ops::Context&, Matrix<T> part, const Piece&) const;
  /// to (N, D) = added + the sum; `added` may be `to`, or empty; `to` may be `part`.
  void end_sum(const ops::Context&, Matrix<const T> added, Matrix<T> part, Matrix<T> to,
               const Piece&) const;

  /// All-gather over tensor ranks: rank r has written the r-th part of `values`.
  void gather(const ops::Context&, void* values, std::size_t bytes_of_part) const;

  // Between stages. In training a message is sent together with the next receive: two neighbours
  // may have messages for each other, and neither may wait for the other to receive first (schedule
  // of Narayanan et al. 2021, section 2.2). It must not be overwritten until then.
  void to_next(const ops::Context& context, Matrix<T> values) const;
  void to_previous(const ops::Context& context, Matrix<T> values) const;
  void from_next(const ops::Context& context, Matrix<T> values) const;
  void from_previous(const ops::Context& context, Matrix<T> values) const;
  /// Sends the deferred message, if any.
  void settle(const ops::Context& context) const;
  /// Broadcast from the last stage.
  void from_last(const ops::Context& context, void* values, std::size_t bytes) const;

 private:
  using Message = comm::Group::Message;
  struct Exchange {
    std::unique_ptr<comm::PartExchange> between;
    Matrix<T> received;
    ops::SideStream side;
    ops::Mark given;
  };
  const comm::Mesh& mesh() const;
  void send(const ops::Context&, Matrix<T> values, int stage) const;
  void receive(const ops::Context&, Matrix<T> values, int stage) const;

  Share share_;
  bool training_;
  std::shared_ptr<Exchange> exchange_;  // null: begin_sum() sums
  mutable Message waiting_;             // deferred; not logical state
};

}  // namespace tern::model::detail
