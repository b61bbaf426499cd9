/// The share of a model that one rank holds, where tensor ranks divide each layer and pipeline
/// stages the stack of layers.
///
/// Tensor ranks (Shoeybi et al. 2019, "Megatron-LM", section 3) hold whole heads: rows of q, k and
/// v and columns of o_proj; rows of gate and up and columns of down_proj, of experts too; rows of
/// embedding and head. Key-value heads fewer than the ranks are held by several, neighbours of each
/// other. All else is held by every tensor rank. Stages hold whole layers; embeddings are on the
/// first, the final norm and the head on the last, tied embeddings on both.
#pragma once
#include <cstddef>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"

namespace tern::model {

struct Share {
  std::size_t tensor = 0, tensors = 1;  // this rank among those that divide each layer
  std::size_t stage = 0, stages = 1;
  /// Whom the model is shared with. Null where a share is looked at alone: it can be planned and
  /// filled, but not run, unless it is the whole model.
  const comm::Mesh* mesh = nullptr;

  bool first() const { return stage == 0; }
  bool last() const { return stage + 1 == stages; }
};

/// The share of this rank of `mesh`.
Share share_of(const comm::Mesh& mesh);

/// A stage's layers [first, end).
struct Layers {
  std::size_t first, end;
};
Layers layers_of(const deck::Model& model, const Share& share);

/// Tensor ranks that hold the same key-value heads: 1 where there are enough of them.
std::size_t sharers(const deck::Model& model, std::size_t tensors);

/// Throws UserError if a model cannot be divided so, with the values that work.
void check_division(const deck::Model& model, std::int64_t tensor, std::int64_t pipeline);

}  // namespace tern::model
