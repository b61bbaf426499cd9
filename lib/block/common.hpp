/// Shared by the parts of all blocks: links to other ranks, precision of products, workspace.
#pragma once
#include <functional>

#include "block/detail/overlapped_sums.hpp"
#include "memory/narrow.hpp"
#include "ops/ops.hpp"
#include "parameters/binder.hpp"

namespace tern::model {

/// Inputs and outputs of a linear map.
struct MapShape {
  std::size_t inputs, outputs;
};

/// Input of a linear map (N, I), or gradient of its output (N, O).
template <class T>
using Operand = ops::MapOperand<T>;

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
  bool trains = true;        // a backward pass follows
  bool in_fp8;               // linear maps
  ops::Fp8Workspace<T> fp8;  // if so
  /// In fp8, of the gradient of the residual stream, or of its dropout if a norm's backward drops
  /// it.
  ops::Fp8Scale dstream;
  /// Whether norms' backward leaves the dropout of their result in `branch` for the next branch.
  bool drops_ahead = false;
  /// In decoding: memory for the input of a map, if inputs are rounded for maps in fp8.
  ops::Fp8Rows coded_input;
  Vector<std::uint32_t> saturated;  // (1) in fp8 and training: count of numbers beyond their scale
  Matrix<T> branch;                 // (N, D), only with dropout or several tensor ranks
  Vector<A> partial;                // partial sums of norms' backward, in training
  /// Of the gradients of maps: `overwrite` if each pass's are summed over ranks apart.
  ops::Write weight_gradients = ops::Write::add;

  Common(const Share& share, bool sends_later, bool in_fp8_)
      : links(share, sends_later), sums(links), in_fp8(in_fp8_) {}
  Common(const Common&) = delete;  // `sums` refers to `links`
  Common& operator=(const Common&) = delete;

  /// None unless maps are in fp8.
  ops::Fp8Scale request_scale(Arena& arena, const std::string& label) const {
    if (!in_fp8) return {};
    ops::Fp8Scale scale(arena, label + "/scale", Term::activations);
    scale.saturated = saturated;
    return scale;
  }
  bool takes(std::size_t rows, const Linear<T>& map) const {
    const std::size_t I = map.weight.extent(1), O = map.weight.extent(0);
    return in_fp8 && O > 0 && ops::fp8_takes(rows, I, O);
  }
  // Operands of a map, in fp8 if it is: Fp8Workspace.
  Operand<T> kept(const Linear<T>& map, Matrix<T> kept, const ops::Fp8Scale& scale) const {
    return takes(kept.extent(0), map) ? fp8.kept(kept, scale) : coded(map, kept);
  }
  Operand<T> input(const Linear<T>& map, Matrix<T> x, const ops::Fp8Scale& scale,
                   bool transposed) const {
    return takes(x.extent(0), map) ? fp8.input(x, scale, transposed) : coded(map, x);
  }
  /// In decoding, with codes if the map takes any; they live until the next map's.
  Operand<T> coded(const Linear<T>& map, Matrix<T> x) const {
    if (!map.coded.wanted() || !coded_input.wanted()) return {x};
    return {x, {}, coded_input.shaped(x.extent(0), x.extent(1))};
  }
  Operand<T> gradient(const Linear<T>& map, Matrix<T> dy, const ops::Fp8Scale& scale) const {
    return takes(dy.extent(0), map) ? fp8.gradient(dy, scale, map.dbias.size() > 0)
                                    : Operand<T>{dy};
  }

  /// y = added + map(x); `added` may be y, or empty.
  void multiply(const ops::Context&, const Linear<T>&, const Operand<T>& x, Matrix<T> y,
                Matrix<const T> added = {}) const;
  /// dx, which may be x, from dy; adds to the gradient of the bias and, unless `weight_gradients` is
  /// `overwrite`, of the weight.
  void multiply_backward(const ops::Context&, const Linear<T>&, const Operand<T>& dy,
                         const Operand<T>& x, Matrix<T> dx) const;
  // The two halves of it.
  void weight_gradient(const ops::Context&, const Linear<T>&, const Operand<T>& dy,
                       const Operand<T>& x) const;
  void input_gradient(const ops::Context&, const Linear<T>&, const Operand<T>& dy,
                      Matrix<T> dx) const;
  /// multiply_backward() with dx, of gradient_buffer(), summed over tensor ranks: open `sums`, which
  /// overlap with the gradient of the weight and what `meanwhile` computes.
  void multiply_backward_summed(
      const ops::Context&, const Linear<T>&, const Operand<T>& dy, const Operand<T>& x,
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
  void add_map(const ops::Context&, const Common<T>&, const Linear<T>& map,
               const Operand<T>& x) const;
  /// The same for one piece, whose rows x holds, without dropout; leaves a sum of Common::sums open.
  void begin(const ops::Context&, const Common<T>&, const Linear<T>& map, const Operand<T>& x,
             const Piece&) const;
};

/// Gradient of a branch (N, D), which `map` ends, from that of the stream it was added to. `known`:
/// a norm's backward wrote it last, so Common::dstream holds its magnitude.
template <class T>
Operand<T> branch_gradient(const ops::Context&, const Common<T>&, const Linear<T>& map,
                           Matrix<T> dstream, bool known, const ops::DropoutKey& dropout);

/// Rows of an operand, none of whose transposed numbers are read.
template <class T>
Operand<T> rows_of(const Operand<T>& all, Range rows);

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
