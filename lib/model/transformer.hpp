/// Training's and evaluation's view of the transformer: hand-written forward and backward, layer by
/// layer. With rmsnorm, swiglu and rope it is Transformers' LlamaForCausalLM (with qk_norm
/// Qwen3ForCausalLM, with experts as well Qwen3MoeForCausalLM), operation for operation; with
/// layernorm, gelu, learned positions and biases GPT2LMHeadModel. Blocks are in block/,
/// decoding in decoder.hpp. Dropout is GPT-2's residual and embedding dropout: on the sum of
/// embeddings and on each branch before it is added. Attention probabilities are not dropped.
///
/// No hidden state between calls: a forward and its backward are given the same MicroBatch.
#pragma once
#include "model/detail/layer_stack.hpp"

namespace tern::model {

/// If the model is divided (ParameterTree::share()), every call is collective over the replica
/// (detail/layer_stack.hpp).
template <class T>
class Transformer {
  using A = Accumulate<T>;

 public:
  /// Keeps views of `parameters`, not the object. Requests everything it needs from the arena.
  Transformer(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
              const TransformerOptions& options, Arena& arena)
      : stack_(model, tree, parameters, options, arena), dropout_(model.dropout > 0) {}

  /// Fills the rotary table. Call once, after the arena allocates.
  void prepare(const ops::Context& context) { stack_.prepare(context); }

  const ModelShard& share() const { return stack_.share(); }
  std::size_t passes() const { return stack_.passes(); }  // over the blocks per step
  /// Inputs and outputs of a block's linear maps that may be multiplied in fp8.
  std::vector<linear::MapShape> maps() const {
    std::vector<linear::MapShape> all;
    for (const Map<T>& map : stack_.block.maps_of(stack_.parameters_of(0)))
      all.push_back(map->shape());
    return all;
  }
  /// Micro-batches that may be between their forward and their backward.
  std::size_t in_flight() const { return stack_.options.in_flight; }

  // Forward, in this order. A recursive model (detail/recursion.hpp) takes steps, counted from 0.
  void embed(const ops::Context&, const MicroBatch<T>&) const;
  /// The next step; its result, the head's input, is valid until the step after: all rows (N, D),
  /// or in training at least those scored.
  Matrix<const T> advance(const ops::Context&, const MicroBatch<T>&, std::size_t step = 0) const;
  /// Both, for one step.
  Matrix<const T> forward(const ops::Context& context, const MicroBatch<T>& micro) const {
    embed(context, micro);
    return advance(context, micro);
  }

  /// losses (M) of the finished forward and, unless empty, the argmax tokens best (M). On all ranks
  /// of the replica.
  void loss(const ops::Context&, const MicroBatch<T>&, const ops::HeadOptions&, Vector<A> losses,
            Vector<std::int32_t> best = {}, std::size_t step = 0) const;

  /// Load-balance loss (1) of experts over all layers (ops/experts.hpp), between forward and
  /// backward. The result, passed as MicroBatch::balanced, makes backward add the gradient of
  /// `weight` times that loss.
  Vector<const A> balance(const ops::Context& context, double weight, Vector<A> loss) const {
    return stack_.block.experts.balance(context, weight, stack_.sequences().rows(), loss);
  }

  // Backward of the latest step, in this order; gradients are added to Parameters::gradient.
  /// losses (M) and the gradient through the head. weights (M): d total / d loss_i. In a pipeline
  /// only the last stage gets losses.
  void loss_backward(const ops::Context&, const MicroBatch<T>&, const ops::HeadOptions&,
                     Vector<const A> weights, Vector<A> losses, std::size_t step = 0) const;
  /// Final norm and all blocks. Deferred for connected steps: the last one's call runs them all. With
  /// TransformerOptions::weights_later call weights.run_later() before the next forward in the slot.
  void backward(const ops::Context&, const MicroBatch<T>&, WeightGradients<T>& weights,
                std::size_t step = 0) const;
  /// An empty queue for backward().
  WeightGradients<T> weight_gradients() const;
  /// After all steps.
  void embed_backward(const ops::Context&, const MicroBatch<T>&) const;

  /// (1) in fp8, else empty: raised by the count of numbers that saturate in training.
  const Vector<std::uint32_t>& saturated() const { return stack_.shared.precision.saturated(); }

  /// Sends what a pipeline stage has for its neighbors: at the end of a step, and before when the
  /// neighbor is known to wait for it.
  void settle(const ops::Context& context) const { stack_.shared.links.flush_send(context); }

  /// Logits (rows, V) of consecutive rows of the finished forward, for tests. On all ranks of the
  /// replica.
  void logits(const ops::Context&, std::size_t first_row, Matrix<T> result) const;
  /// Latest result (N, D) of a pass whose rows are all computed; in evaluation all passes before
  /// the last share one.
  Matrix<const T> finished(std::size_t pass, std::size_t step = 0) const {
    return stack_.final_of(stack_.slot_of(0, step), pass, stack_.sequences()).output;
  }

 private:
  Sequences sequences_of(const MicroBatch<T>&) const;
  Mask mask_of(const MicroBatch<T>&) const;
  ops::DropoutKey embedding_key(const MicroBatch<T>&) const;
  BlockDropout keys(const MicroBatch<T>&, std::size_t step, const detail::Visit&) const;
  /// The context with the scaling of the micro-batch's step.
  ops::Context scaled(const ops::Context&, const MicroBatch<T>&, std::size_t step) const;
  typename Block<T>::Attend attend(const ops::Context&, const MicroBatch<T>&,
                                   std::size_t layer) const;
  Matrix<T> dfinished(std::size_t step) const { return stack_.dfinished[stack_.slot_of(0, step)]; }
  Matrix<const T> pick(const ops::Context&, const MicroBatch<T>&, std::size_t step) const;
  void norm_backward(const ops::Context&, const MicroBatch<T>&, std::size_t step,
                     const detail::Visit&) const;
  void recompute(const ops::Context&, const MicroBatch<T>&, std::size_t step,
                 const detail::Visit&) const;
  void visit_backward(const ops::Context&, const MicroBatch<T>&, std::size_t step,
                      const detail::Visit&, StreamGradient<T>&, WeightGradients<T>&) const;
  void step_backward(const ops::Context&, const MicroBatch<T>&, std::size_t step,
                     WeightGradients<T>&) const;

  detail::LayerStack<T> stack_;
  bool dropout_;
};

}  // namespace tern::model
