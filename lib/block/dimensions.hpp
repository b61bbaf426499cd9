/// Sizes of a model and of a pass over it, in the project's letters.
#pragma once
#include "deck/deck.hpp"
#include "parameters/model_shard.hpp"

namespace tern::model {

/// H, K and F are this rank's share.
struct Dimensions {
  std::size_t D, H, K, E, F, V;
  std::size_t W;        // rows of embedding and head on this rank; V if undivided
  std::size_t X, k;     // experts, experts per token; 0 and 1 if dense
  std::size_t qkv, up;  // widths of the fused projections: (H + 2K) E, and 2F or F
  explicit Dimensions(const deck::Model& model, const ModelShard& share = {});
};

/// The rows of a pass: B sequences of T tokens.
struct Sequences {
  std::size_t batch, tokens;
  std::size_t rows() const { return batch * tokens; }
};

}  // namespace tern::model
