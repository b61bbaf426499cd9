/// Sums that the next norm makes: over tensor ranks, overlapped with the kernels given to the
/// context between begin and end, and with dropout. Two tensor ranks exchange their parts
/// (comm/part_exchange.hpp); others, and two that cannot, sum them at the beginning.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "base/range.hpp"
#include "block/links.hpp"
#include "ops/elementwise/functions.hpp"

namespace tern::model::detail {

template <class T>
class OverlappedSums {
 public:
  /// Rows of (N, D) that are summed at once.
  struct Piece {
    Range rows;
    std::size_t slot;
  };
  /// to = added + sum of the ranks' parts, each (rows of the piece, D). `added` may be `to`, or
  /// empty; `to` may be `part`.
  struct Sum {
    Matrix<const T> added;
    Matrix<T> part, to;
    ops::DropoutKey dropout = {};  // of the part, on one tensor rank
  };

  explicit OverlappedSums(const Links<T>& links) : links_(links) {}

  /// From now on two tensor ranks exchange parts, if they can. The memory, a slot per row, has
  /// slot_rows() for each. Collective.
  void exchange_through(Matrix<T> memory);
  static std::size_t slot_rows(std::size_t rows, std::size_t unit);

  /// All rows: two halves, in whole units, if parts are exchanged. The default unit is a tile of
  /// products.
  std::vector<Piece> pieces(std::size_t rows, std::size_t unit = tile) const;
  /// No other sum of the piece's slot may be open.
  void begin(const ops::Context&, const Sum&, const Piece&) const;
  /// All open sums.
  void end(const ops::Context&) const;
  /// The sum of the slot by compute(sum), where `sum` may be none.
  template <class Compute>
  void end(const ops::Context& context, std::size_t slot, const Compute& compute) const {
    const bool opened = open_[slot].to.data();
    compute(arrived(context, slot));
    if (exchange_ && opened) exchange_->release(slot, context);
  }

 private:
  static constexpr std::size_t tile = 128;
  static constexpr std::size_t slots = comm::PartExchange::slots;
  ops::PendingSum<T> arrived(const ops::Context&, std::size_t slot) const;

  const Links<T>& links_;
  std::shared_ptr<comm::PartExchange> exchange_;  // null: begin() sums
  Matrix<T> slots_;                               // its memory, (slots, slot_rows() x D)
  mutable std::array<Sum, slots> open_;           // those without `to` are not; no logical state
};

}  // namespace tern::model::detail
