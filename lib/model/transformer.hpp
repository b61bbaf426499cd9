/// The transformer as training and evaluation see it: forward and backward by hand, layer by layer.
/// With rmsnorm, swiglu and rope it is Transformers' LlamaForCausalLM (with qk_norm:
/// Qwen3ForCausalLM, with experts besides: Qwen3MoeForCausalLM) to the last operation; with
/// layernorm, gelu, learned positions and biases GPT2LMHeadModel. model/block/ has the blocks,
/// decoder.hpp what generators call. Dropout stands where GPT-2 has residual and embedding dropout:
/// on the sum of embeddings and on each branch before it is added. Attention's probabilities are
/// not dropped.
///
/// No call remembers the one before: what a forward and its backward must agree on is a MicroStep,
/// which both are given.
#pragma once
#include "model/detail/core.hpp"

namespace tern::model {

/// Of a share of a model (ParameterTree::share()) every call is made by all ranks of the replica,
/// in the same order (detail/core.hpp).
template <class T>
class Transformer {
  using A = Accumulate<T>;

 public:
  /// Keeps views of `parameters`, not the object. Requests everything it needs from the arena.
  Transformer(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
              const TransformerOptions& options, Arena& arena)
      : core_(model, tree, parameters, options, arena), dropout_(model.dropout > 0) {}

  /// Fills what is constant (rotary table). Once, after the arena allocates. Throws UserError if
  /// the device cannot multiply in 8 bits and shall.
  void prepare(const ops::Context& context) { core_.prepare(context); }

  const Share& share() const { return core_.share(); }
  std::size_t passes() const { return core_.passes(); }  // of the stack of blocks in a step

  // Forward, in this order. A recursive model (detail/recursion.hpp) takes steps, counted from 0.
  void embed(const ops::Context&, const MicroStep<T>&) const;
  /// The next step; its result (N, D), which the head reads until the one after.
  Matrix<const T> advance(const ops::Context&, const MicroStep<T>&, std::size_t step = 0) const;
  /// Both, of one step.
  Matrix<const T> forward(const ops::Context& context, const MicroStep<T>& micro) const {
    embed(context, micro);
    return advance(context, micro);
  }

  /// losses (M) of the finished forward, and best (M), unless empty: the likeliest tokens. On all
  /// ranks of the replica.
  void loss(const ops::Context&, const MicroStep<T>&, const ops::HeadOptions&, const Scored& scored,
            Vector<A> losses, Vector<std::int32_t> best = {}) const;

  /// Between forward and backward of a model of experts: how unevenly they were used, as
  /// ops/experts.hpp has it over all layers, into loss (1). The result, as MicroStep::balanced,
  /// has backward add the gradient of `weight` times that.
  Vector<const A> balance(const ops::Context& context, double weight, Vector<A> loss) const {
    return core_.block.experts.balance(context, weight, core_.sequences().rows(), loss);
  }

  // Backward of the step advanced to last, in this order; gradients are added to
  // Parameters::gradient.
  /// losses (M) and the gradient through head and final norm. weights (M): d total / d loss_i. Of a
  /// pipeline only the last stage gets losses.
  void loss_backward(const ops::Context&, const MicroStep<T>&, const ops::HeadOptions&,
                     const Scored& scored, Vector<const A> weights, Vector<A> losses) const;
  /// All blocks.
  void backward(const ops::Context&, const MicroStep<T>&, std::size_t step = 0) const;
  /// After all steps.
  void embed_backward(const ops::Context&, const MicroStep<T>&) const;

  /// At the end of a step of a pipeline: what a stage still has for its neighbours leaves.
  void settle(const ops::Context& context) const { core_.common.links.settle(context); }

  /// Logits (rows, V) of neighbouring rows of the finished forward, for tests. On all ranks of the
  /// replica.
  void logits(const ops::Context&, std::size_t first_row, Matrix<T> result) const;
  /// The result (N, D) of the latest pass of a number, or in evaluation, where all passes before
  /// the last share it, of any of those.
  Matrix<const T> finished(std::size_t pass) const {
    return core_.final_of(0, pass, core_.sequences()).output;
  }

 private:
  Sequences sequences_of(const MicroStep<T>&) const;
  Mask mask_of(const MicroStep<T>&) const;
  ops::DropoutKey embedding_key(const MicroStep<T>&) const;
  BlockDropout keys(const MicroStep<T>&, std::size_t step, std::size_t place) const;
  typename Block<T>::Attend attend(const ops::Context&, const MicroStep<T>&) const;
  Matrix<const T> pick(const ops::Context&, const MicroStep<T>&, const Scored& scored) const;
  void norm_backward(const ops::Context&, const MicroStep<T>&, std::size_t pass) const;
  void recompute(const ops::Context&, const MicroStep<T>&, std::size_t step,
                 std::size_t place) const;
  void block_backward(const ops::Context&, const MicroStep<T>&, std::size_t step,
                      std::size_t place) const;

  detail::Core<T> core_;
  bool dropout_;
};

}  // namespace tern::model
