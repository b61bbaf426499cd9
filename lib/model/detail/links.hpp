/// What a transformer exchanges with the ranks that hold the rest of its model.
#pragma once
#include "memory/views.hpp"
#include "model/share.hpp"
#include "ops/context.hpp"

namespace tern::model::detail {

template <class T>
class Links {
 public:
  /// `training`: what is sent may wait, see send(). Throws InternalError for a share of a model
  /// without a mesh, once something must be exchanged.
  Links(const Share& share, bool training) : share_(share), training_(training) {}

  const Share& share() const { return share_; }

  /// Sums over tensor ranks, in place. V is T or Accumulate<T>.
  template <class V>
  void sum(const ops::Context&, Matrix<V> values) const;
  /// Gives every tensor rank all parts: rank r has written the r-th of `values`.
  void gather(const ops::Context&, void* values, std::size_t bytes_of_part) const;

  // Between stages. In training a message is sent with the next one that is received, for two
  // neighbours may have something for each other, and neither must wait for the other to listen
  // first (schedule of Narayanan et al. 2021, section 2.2). It must not be overwritten until then.
  void to_next(const ops::Context& context, Matrix<T> values) const;
  void to_previous(const ops::Context& context, Matrix<T> values) const;
  void from_next(const ops::Context& context, Matrix<T> values) const;
  void from_previous(const ops::Context& context, Matrix<T> values) const;
  /// Sends what still waits.
  void settle(const ops::Context& context) const;
  /// Gives all stages what the last one has.
  void from_last(const ops::Context& context, void* values, std::size_t bytes) const;

 private:
  using Message = comm::Group::Message;
  const comm::Mesh& mesh() const;
  void send(const ops::Context&, Matrix<T> values, int stage) const;
  void receive(const ops::Context&, Matrix<T> values, int stage) const;

  Share share_;
  bool training_;
  mutable Message waiting_;  // on its way: no part of what a transformer is
};

}  // namespace tern::model::detail
