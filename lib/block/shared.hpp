/// Shared by the parts of all blocks: links to other ranks, precision of products, workspace, and
/// the sums over tensor ranks that maps of a block begin.
#pragma once
#include "block/dimensions.hpp"
#include "block/stream.hpp"
#include "linear/precision.hpp"
#include "linear/weight_gradients.hpp"
#include "memory/narrow.hpp"

namespace tern::model {

using linear::Map, linear::MapInput, linear::MapGradient, linear::BranchGradient,
    linear::WeightGradients;

/// In training: rows of a pass that the last block computes after its attention, since no others
/// are scored.
template <class T>
struct ScoredRows {
  Vector<const std::int32_t> rows = {};  // (M) ascending
  /// (M' >= M, D) the block's output, in backward its gradient; the rows after M are zeros before
  /// the block's feed-forward half, and so are their gradients.
  Matrix<T> stream = {};

  bool wanted() const { return rows.extent(0) > 0; }
  std::size_t padded() const { return stream.extent(0); }
};

/// Gradient of the residual stream, which a block's backward takes from its output to its input.
template <class T>
struct StreamGradient {
  Matrix<T> rows;  // (N, D)
  /// The backward of a norm wrote the rows last: it found their magnitude, and dropped them for the
  /// branch before where BlockShared::fuses_next_dropout.
  bool by_norm = false;
  /// If gradients of weights run later: (N, (H + 2K) E), for the gradient of the next projection.
  Matrix<T> dqkv = {};
};

/// Whether a block's forward runs in two pieces, so that sums over tensor ranks of one overlap with
/// the other: unless rows depend on each other, as those of an operand with one scale
/// (Precision::whole_operands) and of experts do. `subset`: only some rows are computed after
/// attention.
bool overlaps(const deck::Model& model, std::size_t tensors, bool whole_operands, double dropout,
              bool subset);

template <class T>
struct BlockShared {
  using A = Accumulate<T>;

  const deck::Model model;
  ModelParallel<T> links;
  detail::TensorSums<T> sums;
  linear::Precision<T> precision;
  /// Of the gradient of the residual stream, or of its dropout if a norm's backward drops it.
  linear::Scale dstream;
  /// Whether norms' backward leaves the dropout of their result in `branch` for the next branch.
  bool fuses_next_dropout = false;
  Matrix<T> branch;   // (N, D), only with dropout or several tensor ranks
  Vector<A> partial;  // partial sums of norms' backward, in training

  BlockShared(const deck::Model& model_, const ModelShard& share, bool sends_later,
              const linear::PrecisionOptions& options, const Parameters<T>& parameters,
              Arena& arena)
      : model(model_),
        links(share, sends_later),
        sums(links),
        precision(options, parameters, arena) {}
  BlockShared(const BlockShared&) = delete;  // `sums` refers to `links`
  BlockShared& operator=(const BlockShared&) = delete;

  // ---- forward
  bool overlaps(const ops::DropoutKey& dropout, const ScoredRows<T>& subset) const {
    return tern::model::overlaps(model, links.share().tensors, precision.whole_operands(),
                                 dropout.probability, subset.wanted());
  }
  /// The pieces that attention and MLP run on, each of whole sequences unless there is only one.
  struct Pieces {
    std::vector<Piece> attention, feed_forward;
  };
  Pieces pieces(const Sequences& sequences, bool overlapped, std::size_t feed_forward_rows) const;
  /// Rows of a piece of the stream = added + dropout(map(x)), with the map summed over tensor ranks;
  /// nothing if the stream is empty.
  void add_map(const ops::Context&, Stream<T>& to, const Piece&, Matrix<const T> added,
               const Map<T>&, const MapInput<T>& x, const ops::DropoutKey&) const;
  /// All rows of the stream = added + dropout(branch), where compute(added, to) writes to = added +
  /// this rank's part of the branch; `added` may be `to`, or empty.
  template <class Branch>
  void add(const ops::Context& context, Stream<T>& to, Matrix<const T> added,
           const ops::DropoutKey& dropout, const Branch& compute) const;
  /// Leaves only sums pending that the next norm is to make: those over tensor ranks if the forward
  /// is overlapped.
  void settle(const ops::Context& context, Stream<T>& stream, bool overlapped) const {
    if (sums.of_several_ranks() && !overlapped) stream.settle(context);
  }

  // ---- backward
  /// Gradient of a branch (N, D), which `map` (null: experts) ends, from that of the stream.
  BranchGradient<T> branch_gradient(const ops::Context&, const Map<T>& map,
                                    const StreamGradient<T>&, const ops::DropoutKey&) const;
  /// Where the gradient of a map's input x (N, D) may be written before that of the weight: x itself
  /// unless several tensor ranks share the map.
  Matrix<T> dx_target(Matrix<T> x) const {
    return sums.of_several_ranks() ? branch_rows({0, x.extent(0)}) : x;
  }
  /// dx (N, D) from dy, summed over tensor ranks, while queued gradients of weights run.
  Stream<T> input_gradient(const ops::Context&, const Map<T>&, const MapGradient<T>& dy,
                           Matrix<T> dx, WeightGradients<T>&) const;
  /// The pieces that a norm's backward runs on.
  std::vector<Piece> norm_pieces(std::size_t rows) const;

  Matrix<T> branch_rows(Range rows) const { return tern::rows_of(branch, rows); }
};

template <class T>
template <class Branch>
void BlockShared<T>::add(const ops::Context& context, Stream<T>& to, Matrix<const T> added,
                         const ops::DropoutKey& dropout, const Branch& compute) const {
  const std::size_t rows = to.rows().extent(0);
  if (rows == 0) return;
  if (dropout.probability == 0 && !sums.of_several_ranks()) return compute(added, to.rows());
  const Matrix<T> part = branch_rows({0, rows});
  compute(Matrix<const T>(), part);
  to.add(context, {{0, rows}}, added, part, dropout, false);
}

}  // namespace tern::model
