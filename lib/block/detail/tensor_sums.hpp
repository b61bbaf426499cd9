/// Sums over tensor ranks, in pieces of rows. Two tensor ranks exchange their parts of a piece
/// (comm/part_exchange.hpp) while they compute something else; others, and two that cannot, sum at
/// once.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "base/range.hpp"
#include "block/model_parallel.hpp"

namespace tern::model {

/// Rows of (N, D) that are summed together. Pieces in different slots can be under way at the same
/// time.
struct Piece {
  Range rows;
  std::size_t slot = 0;
};

namespace detail {

template <class T>
class TensorSums {
 public:
  /// `links` must outlive it.
  explicit TensorSums(const ModelParallel<T>& links) : links_(links) {}

  /// From now on two tensor ranks exchange parts, if they can. The memory, a slot per row, has
  /// slot_rows() for each. Collective.
  void exchange_through(Matrix<T> memory);
  static std::size_t slot_rows(std::size_t rows, std::size_t unit);

  /// All rows: two halves, in whole units, if parts are exchanged. The default unit is a tile of
  /// products.
  std::vector<Piece> pieces(std::size_t rows, std::size_t unit = tile) const;
  bool exchanges() const { return exchange_ != nullptr; }
  bool of_several_ranks() const { return links_.share().tensors > 1; }

  /// `part` (rows, D) becomes the sum.
  void sum(const ops::Context& context, Matrix<T> part) const { links_.sum(context, part); }
  // Only if exchanges(): in turn, for each slot.
  void send(const ops::Context&, Matrix<T> part, std::size_t slot) const;
  /// The two terms of the sum, in the same order on both ranks.
  std::pair<Matrix<const T>, Matrix<const T>> terms(const ops::Context&, Matrix<T> part,
                                                    std::size_t slot) const;
  void release(const ops::Context&, std::size_t slot) const;

 private:
  static constexpr std::size_t tile = 128;

  const ModelParallel<T>& links_;
  std::shared_ptr<comm::PartExchange> exchange_;  // null: sum()
  Matrix<T> slots_;                               // its memory, (slots, slot_rows() x D)
};

}  // namespace detail
}  // namespace tern::model
