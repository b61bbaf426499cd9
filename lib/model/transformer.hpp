/// The transformer, forward and backward by hand, layer by layer. With rmsnorm, swiglu and rope it
/// is Transformers' LlamaForCausalLM (with qk_norm: Qwen3ForCausalLM, with experts besides:
/// Qwen3MoeForCausalLM) to the last operation; with
/// layernorm, gelu, learned positions and biases GPT2LMHeadModel. Pre-norm blocks:
/// x += attention(norm(x)); x += ffn(norm(x)). Dropout stands where GPT-2 has residual and
/// embedding dropout: on the sum of embeddings and on each branch before it is added. Attention's
/// probabilities are not dropped.
#pragma once
#include <cstdint>
#include <vector>

#include "model/detail/block.hpp"
#include "model/detail/head.hpp"
#include "model/parameters.hpp"
#include "ops/ops.hpp"

namespace tern::model {

/// The rows of a pass: N = B*T of them, in arrays of the device.
struct Rows {
  Vector<const std::int32_t> tokens;            // (N)
  Vector<const std::int32_t> order = {};        // (N) rows sorted by token, for backward
  Vector<const std::int32_t> positions = {};    // (N); empty: row t of a sequence stands at t
  Vector<const std::int32_t> levels = {};       // (N) rows of the level embedding; empty: none
  Vector<const std::int32_t> level_order = {};  // (N) rows sorted by level, for backward
};

/// What the head predicts. M rows of the pass, or all N of them.
struct Scored {
  Vector<const std::int32_t> rows = {};  // (M) ascending; empty: all
  Vector<const std::int32_t> targets;    // (M), < 0: no loss
};

namespace detail {
struct StateOptions;
}

struct TransformerOptions {
  std::size_t batch, tokens;  // B, T of one micro-step
  bool training = true;       // false: no gradients, one LayerState for all layers
  bool recompute = false;     // keep block inputs only, run each block's forward again in backward
  std::size_t positions = 0;  // rows of the rotary table; 0: tokens
  std::size_t head_rows = 0;  // rows of a chunk of logits; 0: head_chunk_rows()
  std::size_t scored = 0;     // the most rows that the head is ever given; 0: all
  std::size_t passes = 1;     // of the stack of blocks between a forward and its backward
  std::size_t in_flight = 1;  // micro-steps between a forward and its backward (pipelines)
  bool fp8 = false;           // multiply the linear maps of the blocks in 8 bits: ops/fp8.hpp
};

/// Rows of logits that the head holds at a time. On the host at most 256, so that a chunk is soon
/// used again; on a GPU at most 128 MiB of them (1,334 rows of 50,304 bf16), enough for full-rate
/// products. The rows are split into chunks of nearly equal size.
std::size_t head_chunk_rows(std::size_t rows, std::size_t vocabulary, std::size_t element_bytes,
                            bool host);

/// Of a share of a model (ParameterTree::share()) every call is made by all ranks of the replica,
/// in the same order. A stage takes what enters its first block from the stage before, instead of
/// embedding, and hands on what its last block gives, instead of finishing; likewise backward.
template <class T>
class Transformer {
 public:
  /// Keeps views of `parameters`, not the object. Requests everything it needs from the arena.
  Transformer(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
              const TransformerOptions& options, Arena& arena);

  /// Fills what is constant (rotary table). Once, after the arena allocates. Throws UserError if
  /// the device cannot multiply in 8 bits and shall.
  void prepare(const ops::Context&);

  /// The micro-step that the calls after it are about: 0, ..., in_flight - 1.
  void select(std::size_t slot);
  /// At the end of a step of a pipeline: what a stage still has for its neighbours leaves.
  void settle(const ops::Context& context) const { blocks_.links.settle(context); }
  const Share& share() const { return blocks_.links.share(); }

  // Forward, in this order. A block's `place` is pass x layers() + layer. The dropout key's `layer`
  // is the number of the first of the 1 + 2 layers() x passes streams that are drawn from.
  void embed(const ops::Context&, const Rows& rows, const ops::DropoutKey& dropout = {});
  void block(const ops::Context&, std::size_t place, const ops::Pattern& pattern,
             const ops::DropoutKey& dropout);
  /// Final norm of a pass. The last pass's result (N, D) is what the head reads.
  Matrix<const T> finish(const ops::Context&, std::size_t pass = 0);
  /// All of the above, of one pass.
  Matrix<const T> forward(const ops::Context&, const Rows& rows, const ops::Pattern& pattern,
                          const ops::DropoutKey& dropout = {});

  /// losses (M) of the finished forward, and best (M), unless empty: the likeliest tokens. On all
  /// ranks of the replica.
  void loss(const ops::Context&, const ops::HeadOptions&, const Scored& scored,
            Vector<Accumulate<T>> losses, Vector<std::int32_t> best = {});

  /// Between forward and backward of a model of experts: how unevenly they were used, as
  /// ops/experts.hpp has it over all layers, into loss (1). The backward that follows adds the
  /// gradient of `weight` times that; without this call, none.
  void balance(const ops::Context& context, double weight, Vector<Accumulate<T>> loss) {
    blocks_.experts.balance(context, weight, blocks_.rows(), loss);
  }

  // Backward, in this order; gradients are added to Parameters::gradient.
  /// losses (M) and the gradient through head and final norm. weights (M): d total / d loss_i. Of a
  /// pipeline the last stage alone gets losses.
  void loss_backward(const ops::Context&, const ops::HeadOptions&, const Scored& scored,
                     Vector<const Accumulate<T>> weights, Vector<Accumulate<T>> losses);
  void block_backward(const ops::Context&, std::size_t place, const ops::Pattern& pattern,
                      const ops::DropoutKey& dropout);
  /// Of a pass before the last: from the gradient of its result, in stream_gradient(), to that of
  /// what its last block gave.
  void finish_backward(const ops::Context&, std::size_t pass);
  /// With the rows and the dropout key that embed() was given.
  void embed_backward(const ops::Context&, const Rows& rows);

  std::size_t layers() const { return layers_.size(); }  // of this stage
  std::size_t passes() const { return options_.passes; }
  std::size_t rows() const { return blocks_.rows(); }
  // (N, D) each: what enters a pass's first block; the result of the latest finish() of a pass, or
  // in evaluation, where all passes before the last share it, of any of those; and the gradient of
  // the residual stream where backward stands.
  Matrix<T> entry(std::size_t pass) { return state(pass * layers()).input; }
  Matrix<const T> finished(std::size_t pass) const { return final_of(pass).output; }
  Matrix<T> stream_gradient() const { return blocks_.dstream; }
  /// Logits (rows, V) of neighbouring rows of the finished forward, for tests and generation. On
  /// all ranks of the replica, which may draw the same tokens from them.
  void logits(const ops::Context&, std::size_t first_row, Matrix<T> result) const;
  /// Logits (M, V) of finished rows (M, D).
  void logits_of(const ops::Context&, Matrix<const T> rows, Matrix<T> result) const;

  // For generation (evaluation mode only), where keys and values come from a cache and sequences
  // may stand at different positions: the parts of embed() and block() around rotation and
  // attention.
  /// From now on B = batch, T = tokens, with B*T at most the options' rows.
  void reshape(std::size_t batch, std::size_t tokens);
  /// Embeds rows [row, row + tokens.size()), whose positions begin at `first` and count up to
  /// `period` rows a sequence; levels as in Rows.
  void embed_rows(const ops::Context&, std::size_t row, Vector<const std::int32_t> tokens,
                  std::size_t period, int first, Vector<const std::int32_t> levels = {});
  /// Norm, q, k, v and q/k norm (unless that comes later) of a block; the result (N, (H + 2K) E) is
  /// not yet rotated.
  enum class HeadNorm { now, later };
  Matrix<T> project_qkv(const ops::Context&, std::size_t place, HeadNorm = HeadNorm::now);
  /// The q/k norm and the rotation that follow a product without them.
  ops::HeadStage<T> head_stage(std::size_t place) const;
  /// Rotates q and k of `batch` sequences of `tokens` rows from `row` on.
  void rotate_rows(const ops::Context&, std::size_t row, std::size_t batch, std::size_t tokens,
                   const ops::Positions&);
  /// Where attention's result goes.
  Matrix<T> attention_result() const { return shared_.attention; }
  Matrix<Accumulate<T>> lse() const { return shared_.lse; }
  /// The rest of the block after attention.
  void end_block(const ops::Context&, std::size_t place, const ops::DropoutKey& dropout);

 private:
  using A = Accumulate<T>;
  /// Of the final norm in one pass.
  struct Final {
    Matrix<T> input, output;  // (N, D)
    Vector<A> mean, rstd;     // (N)
  };

  void allocate_states(Arena& arena);
  void allocate_evaluation(Arena& arena, const detail::StateOptions& options);
  void share_finals();
  void allocate_workspace(Arena& arena);
  void allocate_exchange(Arena& arena);
  std::size_t head_rows() const;
  LayerState<T>& state(std::size_t place);
  Matrix<T> output_of(std::size_t place) const;
  /// In inputs_ and states_.
  std::size_t at(std::size_t place) const { return slot_ * passes() * layers() + place; }
  const Final& final_of(std::size_t pass) const { return finals_[slot_ * passes() + pass]; }
  const detail::Layer<T>& parameters_of(std::size_t place) const {
    return layers_[place % layers_.size()];
  }
  void need(const ops::Context&, std::size_t place) const;
  void norm_backward(const ops::Context&, const Final& pass);
  ops::DropoutKey key(const ops::DropoutKey& base, std::size_t place, std::size_t branch) const;
  ops::DropoutKey embedding_key(const ops::DropoutKey& base) const;
  Matrix<const T> pick(const ops::Context&, const Scored& scored);
  void recompute(const ops::Context&, std::size_t place, const ops::Pattern&,
                 const ops::DropoutKey&);

  TransformerOptions options_;
  detail::Blocks<T> blocks_;
  bool dropout_;
  std::shared_ptr<Residence<T>> residence_;  // null unless fully sharded
  std::size_t first_layer_;                  // of the model's that is here
  std::size_t slot_ = 0;

  // Parameters.
  detail::Linear<T> embedding_, positions_, levels_;
  std::vector<detail::Layer<T>> layers_;
  detail::Gain<T> final_norm_;

  // Activations.
  // Of each micro-step in flight one a place: in training without recomputation, and in training.
  std::vector<LayerState<T>> states_;
  std::vector<Matrix<T>> inputs_;  // (N, D)
  LayerState<T> shared_, whole_;   // of evaluation and recomputation; whole_: before reshape()
  std::vector<Final> finals_;      // one a pass, of each micro-step in flight
  Matrix<T> latent_, answer_;      // (N, D) in evaluation, of several passes; before reshape()
  std::size_t held_;               // the place whose state shared_ holds
  std::vector<ops::DropoutKey> embed_dropout_;  // one a slot

  detail::Head<T> head_;
  // Workspace beside it; that of the blocks is in blocks_.
  Matrix<T> dfinished_;         // (N, D)
  Matrix<T> picked_, dpicked_;  // (M, D), only where not all rows are scored
};

}  // namespace tern::model
