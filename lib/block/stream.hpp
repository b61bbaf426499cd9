/// Rows (N, D) of which some may be sums that are yet to be made: the residual stream between two
/// halves of blocks, to which a half has added its branch, and the gradient of a branch's input. The
/// operation that reads a row first, a norm or its backward, makes the sum on the way.
///
/// Sums are pending where tensor ranks exchange their parts of a branch, in pieces of which one
/// travels while another one is computed, and where a branch is dropped.
#pragma once
#include <vector>

#include "block/detail/tensor_sums.hpp"
#include "ops/elementwise/elementwise.hpp"

namespace tern::model {

template <class T>
class [[nodiscard]] Stream {
 public:
  /// Settled rows, or none; sums may be added to them. `sums` must outlive it.
  Stream(const detail::TensorSums<T>& sums, Matrix<T> rows) : sums_(&sums), rows_(rows) {}
  Stream(Stream&&) = default;
  Stream& operator=(Stream&&) = default;

  const Matrix<T>& rows() const { return rows_; }

  /// Makes rows of a piece = added + dropout(part), with `part` summed over tensor ranks: exchanged,
  /// if that is asked for and they can, or at once. `added` may be the rows themselves, or empty, and
  /// they may be `part`. No other sum of the piece's slot may be pending.
  void add(const ops::Context&, const Piece&, Matrix<const T> added, Matrix<T> part,
           const ops::DropoutKey& dropout, bool exchange);
  /// compute(sum) reads the rows of a piece, of which `sum` is what remains to be added up, if any.
  /// Pieces as in add(), or all rows.
  template <class Compute>
  void read(const ops::Context& context, const Piece& piece, const Compute& compute);
  /// Adds up all pending sums.
  void settle(const ops::Context&);

 private:
  struct Pending {
    Piece piece;
    Matrix<const T> added;
    Matrix<T> part, to;
    ops::DropoutKey dropout;
    bool exchanged;
  };
  ops::PendingSum<T> sum_of(const ops::Context&, const Pending&) const;
  template <class Compute>
  void make(const ops::Context& context, const Pending& pending, const Compute& compute) const {
    compute(sum_of(context, pending));
    if (pending.exchanged) sums_->release(context, pending.piece.slot);
  }

  const detail::TensorSums<T>* sums_;
  Matrix<T> rows_;
  std::vector<Pending> pending_;
};

template <class T>
template <class Compute>
void Stream<T>::read(const ops::Context& context, const Piece& piece, const Compute& compute) {
  if (pending_.size() > 1 && piece.rows.count == rows_.extent(0)) settle(context);
  for (auto one = pending_.begin(); one != pending_.end(); ++one)
    if (one->piece.slot == piece.slot) {
      const Pending pending = *one;
      pending_.erase(one);
      return make(context, pending, compute);
    }
  compute(ops::PendingSum<T>());
}

}  // namespace tern::model
