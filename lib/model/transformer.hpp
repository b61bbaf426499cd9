/// The transformer, forward and backward by hand, layer by layer. With rmsnorm, swiglu and rope it is
/// Transformers' LlamaForCausalLM (with qk_norm: Qwen3ForCausalLM) to the last operation; with layernorm,
/// gelu, learned positions and biases GPT2LMHeadModel. Pre-norm blocks: x += attention(norm(x));
/// x += ffn(norm(x)).
#pragma once
#include <cstdint>
#include <vector>

#include "model/parameters.hpp"
#include "ops/ops.hpp"

namespace tern::model {

/// What a layer keeps for backward; views of the arena. With recompute = 'block' all layers share one of
/// these and keep `input` alone.
template <class T>
struct LayerState {
  Matrix<T> input;                           // (N, D) residual stream entering the block
  Matrix<T> normed_attention;                // (N, D)
  Matrix<T> qkv;                             // (N, (H + 2K) E), rotated
  Matrix<T> qk_saved;                        // (N, (H + K) E), before q/k norm; empty without
  Matrix<T> attention;                       // (N, H E)
  Matrix<T> middle;                          // (N, D) residual stream between the halves
  Matrix<T> normed_ffn;                      // (N, D)
  Matrix<T> up;                              // (N, 2F) or (N, F)
  Matrix<T> activated;                       // (N, F)
  Matrix<Accumulate<T>> lse;                 // (B*H, T)
  Vector<Accumulate<T>> mean1, rstd1, mean2, rstd2;  // (N)
  Vector<Accumulate<T>> rstd_q, rstd_k;      // (N*H), (N*K)
};

struct TransformerOptions {
  std::size_t batch, tokens;  // B, T of one micro-step
  bool training = true;       // false: no gradients, one shared LayerState
  bool recompute = false;     // keep block inputs only, run each block's forward again in backward
};

template <class T>
class Transformer {
 public:
  Transformer(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
              const TransformerOptions& options, Arena& arena);

  /// Fills what is constant (rotary table). Once, after the arena allocates.
  void prepare(const ops::Context&);

  // Forward, in this order. tokens (N).
  void embed(const ops::Context&, Vector<const std::int32_t> tokens);
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
  void loss_backward(const ops::Context&, const ops::HeadOptions&, Vector<const std::int32_t> targets,
                     Vector<const Accumulate<T>> weights, Vector<Accumulate<T>> losses);
  void block_backward(const ops::Context&, std::size_t layer, const ops::Pattern& pattern,
                      const ops::DropoutKey& dropout);
  void embed_backward(const ops::Context&, Vector<const std::int32_t> tokens,
                      Vector<const std::int32_t> order);

  std::size_t layers() const { return layers_.size(); }
  /// Logits (rows, V) of chosen rows of the finished forward, for tests and generation.
  void logits(const ops::Context&, std::size_t first_row, Matrix<T> result) const;

 private:
  struct Layer;  // views of one layer's parameters and gradients
  // Completed by the implementation in transformer.cpp.
};

}  // namespace tern::model
