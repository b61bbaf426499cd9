/// The feed-forward half of a block that is made of experts (Qwen3-MoE): after the norm, a router
/// gives each token k of the X experts, and the token's branch is the weighted sum of theirs.
///
/// The weights are applied to what stands between an expert's two products. So the gradient of a
/// weight is found there too, and no layer keeps the experts' results (N k, D).
///
/// Tensor ranks divide each expert, and all of them route all tokens.
#pragma once
#include "model/detail/layer.hpp"
#include "model/detail/links.hpp"
#include "model/layer_state.hpp"

namespace tern::model::detail {

template <class T>
class Experts {
  using A = Accumulate<T>;

 public:
  Experts(const deck::Model& model, const Share& share)
      : size_(model, share), renormalise_(model.renormalise_experts) {}

  /// False: the model is dense, and nothing here may be called but request, tally and
  /// forget_balance, which then do nothing.
  bool any() const { return size_.X > 0; }
  /// Workspace of passes of `rows` tokens; `places`: expert layers that a pass goes through.
  void request(Arena& arena, std::size_t rows, std::size_t places, bool training);

  /// Routes normed_ffn, and fills up and activated of the state.
  void hidden(const ops::Context&, const Layer<T>&, LayerState<T>&) const;
  /// to (N, D) = added + the experts' weighted sum, of a share a part of it. added may be `to`, or
  /// empty.
  void output(const ops::Context&, const Layer<T>&, const LayerState<T>&, Matrix<const T> added,
              Matrix<T> to) const;
  /// From the gradient of the branch (N, D) to that of normed_ffn, in its place.
  void backward(const ops::Context&, const Layer<T>&, const Links<T>&, Matrix<const T> doutput,
                LayerState<T>&) const;

  /// Counts for balance(), in training: after the forward of each place.
  void tally(const ops::Context&, const LayerState<T>&, std::size_t place) const;
  /// Transformer::balance, after a pass over `rows` tokens.
  void balance(const ops::Context&, double weight, std::size_t rows, Vector<A> loss);
  /// The backward that follows adds no gradient of it.
  void forget_balance() { balanced_ = false; }

 private:
  Matrix<T> values(const LayerState<T>& s) const;

  Dimensions size_;
  bool renormalise_, balanced_ = false;
  Matrix<T> logits_;         // (N, X), and their gradient
  Matrix<T> values_;         // (N k, D) results of the experts, or gradients of their inputs
  Matrix<A> dweights_;       // (N, k)
  Matrix<A> counts_, sums_;  // (places, X)
  Vector<A> even_, shares_;  // (X): gradient by a probability; workspace
};

}  // namespace tern::model::detail
