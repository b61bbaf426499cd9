/// One rank's share of a model: tensor ranks divide each layer, pipeline stages the stack of
/// layers.
///
/// Tensor ranks (Shoeybi et al. 2019, "Megatron-LM", section 3) hold whole heads: rows of q, k, v
/// and columns of o_proj; rows of gate, up and columns of down_proj, also of experts; rows of
/// embedding and head. If there are fewer key-value heads than ranks, neighboring ranks share one.
/// Everything else is replicated. Stages hold whole layers; embeddings are on the first, final norm
/// and head on the last, tied embeddings on both.
#pragma once
#include <cstddef>

#include "base/range.hpp"
#include "comm/mesh.hpp"
#include "deck/deck.hpp"

namespace tern::model {

struct ModelShard {
  std::size_t tensor = 0, tensors = 1;  // this rank among those that divide each layer
  std::size_t stage = 0, stages = 1;
  /// Ranks that hold the rest. Null for a share without them: it can be planned and filled, but not
  /// run, unless it is the whole model.
  const comm::Mesh* mesh = nullptr;

  bool first() const { return stage == 0; }
  bool last() const { return stage + 1 == stages; }
};

/// The share of this rank of `mesh`.
ModelShard share_of(const comm::Mesh& mesh);

/// A stage's layers, at least one. Stages hold about as many weights each, those of the head
/// included, which the last one multiplies as well.
Range layers_of(const deck::Model& model, const ModelShard& share);

/// Tensor ranks per key-value head; 1 if there are enough heads.
std::size_t kv_replicas(const deck::Model& model, std::size_t tensors);

}  // namespace tern::model
