/// What one layer of the transformer keeps between forward and backward.
#pragma once
#include "deck/deck.hpp"
#include "model/share.hpp"
#include "ops/ops.hpp"

namespace tern::model {

/// Sizes of a model, in the project's letters. H, K and F are those of a rank's share.
struct Dimensions {
  std::size_t D, H, K, E, F, V;
  std::size_t W;        // rows of embedding and head that are here; of a whole model V
  std::size_t X, k;     // experts, and those of a token; of a dense model 0 and 1
  std::size_t qkv, up;  // widths of the fused projections: (H + 2K) E, and 2F or F
  explicit Dimensions(const deck::Model& model, const Share& share = {});
};

/// How an expert layer routed the tokens; empty views in a dense one.
template <class T>
struct RouterState {
  Matrix<Accumulate<T>> probabilities;  // (N, X)
  Matrix<Accumulate<T>> weights;        // (N, k)
  ops::Routing routing;
};

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
  Matrix<T> up;                // (N k, 2F) or (N k, F); of experts by rows of the routing
  Matrix<T> activated;         // (N k, F); of experts times their weights
  RouterState<T> router;
  Matrix<Accumulate<T>> lse;                         // (B*H, T)
  Vector<Accumulate<T>> mean1, rstd1, mean2, rstd2;  // (N); means empty for rmsnorm
  Vector<Accumulate<T>> rstd_q, rstd_k;              // (N*H), (N*K); empty without q/k norm
};

}  // namespace tern::model
