/// The transformer, forward and backward by hand, layer by layer. With rmsnorm, swiglu and rope it
/// is Transformers' LlamaForCausalLM (with qk_norm: Qwen3ForCausalLM) to the last operation; with
/// layernorm, gelu, learned positions and biases GPT2LMHeadModel. Pre-norm blocks:
/// x += attention(norm(x)); x += ffn(norm(x)). Dropout stands where GPT-2 has residual and
/// embedding dropout: on the sum of embeddings and on each branch before it is added. Attention's
/// probabilities are not dropped.
#pragma once
#include <cstdint>
#include <vector>

#include "model/detail/layer.hpp"
#include "model/parameters.hpp"
#include "ops/ops.hpp"

namespace tern::model {

/// What a layer keeps for backward; views of the arena. With recompute = 'block' all layers share
/// one of these and keep `input` alone. In evaluation all share one, `input` and `middle` are the
/// same view, and so are the two normed ones. Backward writes gradients over what it no longer
/// needs (activated, up, normed_*), so each forward serves one backward.
template <class T>
struct LayerState {
  Matrix<T> input;             // (N, D) residual stream entering the block
  Matrix<T> normed_attention;  // (N, D)
  Matrix<T> qkv;               // (N, (H + 2K) E), rotated
  Matrix<T> q_saved, k_saved;  // (N, H E), (N, K E), before q/k norm; or empty
  Matrix<T> attention;         // (N, H E)
  Matrix<T> middle;            // (N, D) residual stream between the halves
  Matrix<T> normed_ffn;        // (N, D)
  Matrix<T> up;                // (N, 2F) or (N, F)
  Matrix<T> activated;         // (N, F)
  Matrix<Accumulate<T>> lse;   // (B*H, T)
  Vector<Accumulate<T>> mean1, rstd1, mean2, rstd2;  // (N); means empty for rmsnorm
  Vector<Accumulate<T>> rstd_q, rstd_k;              // (N*H), (N*K); empty without q/k norm
};

struct TransformerOptions {
  std::size_t batch, tokens;  // B, T of one micro-step
  bool training = true;       // false: no gradients, one shared LayerState
  bool recompute = false;     // keep block inputs only, run each block's forward again in backward
  std::size_t positions = 0;  // rows of the rotary table; 0: tokens
  std::size_t head_rows = 0;  // rows of a chunk of logits; 0: head_chunk_rows()
};

/// Rows of logits that the head holds at a time. On the host at most 256, so that a chunk is soon
/// used again; on a GPU at most 128 MiB of them (1,334 rows of 50,304 bf16), enough for full-rate
/// products. The rows are split into chunks of nearly equal size.
std::size_t head_chunk_rows(std::size_t rows, std::size_t vocabulary, std::size_t element_bytes,
                            bool host);

/// Sizes of a model, in the project's letters.
struct Dimensions {
  std::size_t D, H, K, E, F, V;
  std::size_t qkv, up;  // widths of the fused projections: (H + 2K) E, and 2F or F
  explicit Dimensions(const deck::Model& model);
};

template <class T>
class Transformer {
 public:
  /// Keeps views of `parameters`, not the object. Requests everything it needs from the arena.
  Transformer(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
              const TransformerOptions& options, Arena& arena);

  /// Fills what is constant (rotary table). Once, after the arena allocates.
  void prepare(const ops::Context&);

  // Forward, in this order. tokens (N). The dropout key's `layer` is the number of the first of the
  // 2 layers() + 1 streams that one pass draws from.
  void embed(const ops::Context&, Vector<const std::int32_t> tokens,
             const ops::DropoutKey& dropout = {});
  void block(const ops::Context&, std::size_t layer, const ops::Pattern& pattern,
             const ops::DropoutKey& dropout);
  /// Final norm; the result (N, D) is what the head reads.
  Matrix<const T> finish(const ops::Context&);
  /// All of the above.
  Matrix<const T> forward(const ops::Context&, Vector<const std::int32_t> tokens,
                          const ops::Pattern& pattern, const ops::DropoutKey& dropout = {});

  /// losses (N) of the finished forward.
  void loss(const ops::Context&, const ops::HeadOptions&, Vector<const std::int32_t> targets,
            Vector<Accumulate<T>> losses);

  // Backward, in this order; gradients are added to Parameters::gradient.
  /// losses (N) and the gradient through head and final norm. weights (N): d total / d loss_i.
  void loss_backward(const ops::Context&, const ops::HeadOptions&,
                     Vector<const std::int32_t> targets, Vector<const Accumulate<T>> weights,
                     Vector<Accumulate<T>> losses);
  void block_backward(const ops::Context&, std::size_t layer, const ops::Pattern& pattern,
                      const ops::DropoutKey& dropout);
  /// With the dropout key that embed() was given.
  void embed_backward(const ops::Context&, Vector<const std::int32_t> tokens,
                      Vector<const std::int32_t> order);

  std::size_t layers() const { return layers_.size(); }
  /// Logits (rows, V) of chosen rows of the finished forward, for tests and generation.
  void logits(const ops::Context&, std::size_t first_row, Matrix<T> result) const;

  // For generation (evaluation mode only), where keys and values come from a cache and sequences
  // may stand at different positions: the parts of embed() and block() around rotation and
  // attention.
  /// From now on B = batch, T = tokens, with B*T at most the options' rows.
  void reshape(std::size_t batch, std::size_t tokens);
  /// Embeds rows [row, row + tokens.size()), whose positions begin at `first` and count up to
  /// `period` rows a sequence.
  void embed_rows(const ops::Context&, std::size_t row, Vector<const std::int32_t> tokens,
                  std::size_t period, int first);
  /// Norm, q, k, v and q/k norm of a block; the result (N, (H + 2K) E) is not yet rotated.
  Matrix<T> project_qkv(const ops::Context&, std::size_t layer);
  /// Rotates q and k of `batch` sequences of `tokens` rows from `row` on, at positions from `first`
  /// on.
  void rotate_rows(const ops::Context&, std::size_t row, std::size_t batch, std::size_t tokens,
                   int first);
  /// Where attention's result goes.
  Matrix<T> attention_result() const { return shared_.attention; }
  Matrix<Accumulate<T>> lse() const { return shared_.lse; }
  /// The rest of the block after attention.
  void end_block(const ops::Context&, std::size_t layer, const ops::DropoutKey& dropout);

 private:
  using A = Accumulate<T>;

  void allocate_states(Arena& arena);
  void allocate_workspace(Arena& arena);
  LayerState<T>& state(std::size_t layer);
  Matrix<T> output_of(std::size_t layer) const;
  ops::DropoutKey key(const ops::DropoutKey& base, std::size_t place) const;

  void qkv_forward(const ops::Context&, const detail::Layer<T>&, LayerState<T>&);
  void attend(const ops::Context&, LayerState<T>&, const ops::Pattern&);
  void attention_output(const ops::Context&, std::size_t layer, LayerState<T>&,
                        const ops::DropoutKey&);
  void ffn_hidden(const ops::Context&, const detail::Layer<T>&, LayerState<T>&);
  void ffn_output(const ops::Context&, std::size_t layer, LayerState<T>&, const ops::DropoutKey&);
  void add_branch(const ops::Context&, const detail::Linear<T>&, Matrix<const T> x, Matrix<T> from,
                  Matrix<T> to, const ops::DropoutKey&);
  void recompute(const ops::Context&, std::size_t layer, const ops::Pattern&,
                 const ops::DropoutKey&);

  Matrix<T> branch_gradient(const ops::Context&, const ops::DropoutKey&);
  void ffn_backward(const ops::Context&, const detail::Layer<T>&, LayerState<T>&, Matrix<T> dy);
  void attention_backward(const ops::Context&, const detail::Layer<T>&, LayerState<T>&,
                          const ops::Pattern&, Matrix<T> dy);

  // The model.
  Dimensions size_;
  ops::Norm norm_;
  ops::Activation activation_;
  double eps_, scale_, rope_base_;
  bool rope_, qk_norm_, dropout_;
  detail::Linear<T> embedding_, positions_, head_;
  std::vector<detail::Layer<T>> layers_;
  detail::Gain<T> final_norm_;

  // Activations.
  TransformerOptions options_;
  std::size_t batch_, tokens_, rows_;  // B, T, N
  Matrix<A> rotary_;                   // (positions, E)
  std::vector<LayerState<T>> states_;  // one a layer (training without recomputation), or none
  std::vector<Matrix<T>> inputs_;      // one a layer with recomputation
  LayerState<T> shared_, whole_;       // of evaluation and recomputation; whole_: before reshape()
  Matrix<T> last_, finished_;          // (N, D) entering and leaving the final norm
  Vector<A> last_mean_, last_rstd_;    // (N)
  std::size_t held_;                   // the layer whose state shared_ holds
  ops::DropoutKey embed_dropout_;

  // Workspace.
  Matrix<T> logits_;      // (C, V)
  Matrix<T> dfinished_;   // (N, D)
  Matrix<T> dstream_;     // (N, D) gradient of the residual stream
  Matrix<T> dattention_;  // (N, H E)
  Matrix<T> dqkv_;        // (N, (H + 2K) E)
  Matrix<A> delta_;       // (B*H, T)
  Vector<A> partial_;
  Matrix<T> branch_;  // (N, D), only with dropout
};

}  // namespace tern::model
