/// The arithmetic of a block, forward and backward, in pieces that the transformer puts together.
#pragma once
#include "model/detail/experts.hpp"
#include "ops/ops.hpp"

namespace tern::model::detail {

/// What all blocks of a transformer share: settings and workspace.
template <class T>
struct Blocks {
  using A = Accumulate<T>;

  Blocks(const deck::Model& model, const Share& share, bool training);
  std::size_t rows() const { return batch * tokens; }

  Dimensions size;
  ops::Norm norm;
  ops::Activation activation;
  double eps, scale, rope_base;
  bool rope, qk_norm;
  std::size_t batch = 0, tokens = 0;     // B, T
  Matrix<A> rotary;                      // (positions, E), empty without rope
  Vector<const std::int32_t> positions;  // (N) of the current pass; empty: 0, 1, ... in a sequence

  Links<T> links;
  Experts<T> experts;    // of the feed-forward half, unless it is dense
  Matrix<T> branch;      // (N, D), only with dropout or several tensor ranks
  Matrix<T> dstream;     // (N, D) gradient of the residual stream
  Matrix<T> dattention;  // (N, H E)
  Matrix<T> dqkv;        // (N, (H + 2K) E)
  Matrix<A> delta;       // (B*H, T)
  Vector<A> partial;
  ops::Fp8Workspace<T> fp8;  // empty: the linear maps are multiplied in T

  /// Elements of `fp8` that the linear maps of a block need.
  std::size_t fp8_elements(bool training) const;

  /// Norm, projections, q/k norm.
  void qkv_forward(const ops::Context&, const Layer<T>&, LayerState<T>&) const;
  /// The same without q/k norm.
  void qkv_product(const ops::Context&, const Layer<T>&, LayerState<T>&) const;
  /// Rotates q and k of (batch, tokens) rows of a fused buffer.
  void rotate(const ops::Context&, Matrix<T> qkv, std::size_t sequences, std::size_t length,
              const ops::Positions&, ops::Direction) const;
  /// Rotation and attention.
  void attend(const ops::Context&, LayerState<T>&, const ops::Pattern&) const;
  /// middle = input + dropout(o_proj(attention)).
  void attention_output(const ops::Context&, const Layer<T>&, LayerState<T>&,
                        const ops::DropoutKey&) const;
  /// Norm, up projection (of experts: router too), activation.
  void ffn_hidden(const ops::Context&, const Layer<T>&, LayerState<T>&) const;
  /// output = middle + dropout(down_proj(activated)).
  void ffn_output(const ops::Context&, const Layer<T>&, LayerState<T>&, Matrix<T> output,
                  const ops::DropoutKey&) const;

  /// dstream: from the gradient of the block's output to that of `middle`.
  void ffn_backward(const ops::Context&, const Layer<T>&, LayerState<T>&,
                    const ops::DropoutKey&) const;
  /// dstream: from the gradient of `middle` to that of the block's input.
  void attention_backward(const ops::Context&, const Layer<T>&, LayerState<T>&, const ops::Pattern&,
                          const ops::DropoutKey&) const;

 private:
  Heads<T> part(const Matrix<T>& fused, std::size_t first_head, std::size_t heads) const {
    return heads_of(fused, first_head * size.E, batch, tokens, heads, size.E);
  }
  void multiply(const ops::Context&, const Linear<T>&, Matrix<const T> x, Matrix<T> y,
                ops::Write) const;
  void multiply_backward(const ops::Context&, const Linear<T>&, Matrix<const T> dy,
                         Matrix<const T> x, Matrix<T> dx) const;
  void add_branch(const ops::Context&, const Linear<T>&, Matrix<const T> x, Matrix<T> from,
                  Matrix<T> to, const ops::DropoutKey&) const;
  void add_result(const ops::Context&, Matrix<T> result, Matrix<T> to,
                  const ops::DropoutKey&) const;
  Matrix<T> branch_gradient(const ops::Context&, const ops::DropoutKey&) const;
};

}  // namespace tern::model::detail
