/// Shared by the parts of all blocks: links to other ranks, precision of products, workspace.
#pragma once
#include <functional>

#include "block/detail/overlapped_sums.hpp"
#include "linear/precision.hpp"
#include "memory/narrow.hpp"

namespace tern::model {

using linear::Map, linear::MapInput, linear::MapGradient;

/// In training: rows of a pass that the last block computes after its attention, since no others
/// are scored.
template <class T>
struct Subset {
  Vector<const std::int32_t> rows = {};  // (M) ascending
  /// (M' >= M, D) the block's output, in backward its gradient; the rows after M are zeros before
  /// the block's feed-forward half, and so are their gradients.
  Matrix<T> stream = {};

  bool wanted() const { return rows.extent(0) > 0; }
  std::size_t padded() const { return stream.extent(0); }
};

template <class T>
struct Common {
  using A = Accumulate<T>;

  Links<T> links;
  detail::OverlappedSums<T> sums;
  linear::Precision<T> precision;
  /// Of the gradient of the residual stream, or of its dropout if a norm's backward drops it.
  linear::Scale dstream;
  /// Whether norms' backward leaves the dropout of their result in `branch` for the next branch.
  bool drops_ahead = false;
  Matrix<T> branch;   // (N, D), only with dropout or several tensor ranks
  Vector<A> partial;  // partial sums of norms' backward, in training

  Common(const Share& share, bool sends_later, const linear::PrecisionOptions& options,
         const Parameters<T>& parameters, Arena& arena)
      : links(share, sends_later), sums(links), precision(options, parameters, arena) {}
  Common(const Common&) = delete;  // `sums` refers to `links`
  Common& operator=(const Common&) = delete;

  /// Gradients of a map's weight and of its input x, from dy; dx, of gradient_buffer(), is summed
  /// over tensor ranks: open `sums`, which overlap with the gradient of the weight and what
  /// `meanwhile` computes.
  void map_backward_summed(
      const ops::Context&, const Map<T>&, const MapGradient<T>& dy, const MapInput<T>& x,
      Matrix<T> dx, const std::function<void()>& meanwhile = [] {}) const;
  /// Where the gradient of x (N, D) may be written before that of the weight: x itself unless
  /// several tensor ranks share the map.
  Matrix<T> gradient_buffer(Matrix<T> x) const {
    return links.share().tensors == 1 ? x : branch_rows({0, x.extent(0)});
  }
  Matrix<T> branch_rows(Range rows) const { return tern::rows_of(branch, rows); }
};

/// Adds a branch to the stream: to = from + dropout(branch).
template <class T>
struct Residual {
  using Piece = typename detail::OverlappedSums<T>::Piece;

  Matrix<const T> from;  // (N, D)
  Matrix<T> to;          // (N, D), may be `from`; empty: the branch is not computed
  ops::DropoutKey dropout;

  /// branch(added, to) computes to = added + this rank's part of the branch; `added` may be `to`,
  /// or empty. Parts are summed over tensor ranks. With dropout, on one, leaves a sum of
  /// Common::sums open, which the next norm makes.
  template <class Branch>
  void add(const ops::Context& context, const Common<T>& common, const Branch& branch) const;
  /// The branch is map(x).
  void add_map(const ops::Context&, const Common<T>&, const Map<T>& map,
               const MapInput<T>& x) const;
  /// The same for one piece, whose rows x holds, without dropout; leaves a sum of Common::sums open.
  void begin(const ops::Context&, const Common<T>&, const Map<T>& map, const MapInput<T>& x,
             const Piece&) const;
};

/// Gradient of a branch (N, D), which `map` (null: experts) ends, from that of the stream it was added to. `known`:
/// a norm's backward wrote it last, so Common::dstream holds its magnitude.
template <class T>
MapGradient<T> branch_gradient(const ops::Context&, const Common<T>&, const Map<T>& map,
                               Matrix<T> dstream, bool known, const ops::DropoutKey& dropout);

template <class T>
template <class Branch>
void Residual<T>::add(const ops::Context& context, const Common<T>& common,
                      const Branch& branch) const {
  if (to.extent(0) == 0) return;
  if (dropout.probability == 0 && common.links.share().tensors == 1) return branch(from, to);
  const Matrix<T> result(common.branch.data(), to.extent(0), to.extent(1));
  branch(Matrix<const T>(), result);
  if (common.links.share().tensors == 1)
    return common.sums.begin(context, {from, result, to, dropout}, {{0, to.extent(0)}, 0});
  common.links.sum(context, result);
  ops::make_sum<T>(context, {from, result, {}, to, dropout});
}

}  // namespace tern::model
