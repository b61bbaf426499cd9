#include "parameters/model_shard.hpp"

#include <algorithm>
#include <cmath>

#include "deck/choices.hpp"

namespace tern::model {
namespace {

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// Weights of the head over those of a layer's matrices.
double layers_in_head(const deck::Model& m) {
  const std::int64_t attention = 2 * (m.heads + m.kv_heads) * m.head_dim;
  const std::int64_t dense = (gated(deck::activation_of(m)) ? 3 : 2) * m.ffn_hidden;
  const std::int64_t mlp = m.experts > 0 ? 3 * m.experts * m.expert_hidden : dense;
  return static_cast<double>(m.vocabulary) /
         static_cast<double>(std::max<std::int64_t>(1, attention + mlp));
}

}  // namespace

ModelShard share_of(const comm::Mesh& mesh) {
  return {size(mesh.tensor().rank()), size(mesh.extents().tensor), size(mesh.pipeline().rank()),
          size(mesh.extents().pipeline), &mesh};
}

Range layers_of(const deck::Model& model, const ModelShard& share) {
  const std::size_t layers = size(model.layers), stages = share.stages;
  const double of_stage =
      (static_cast<double>(layers) + layers_in_head(model)) / static_cast<double>(stages);
  const auto begin = [&](std::size_t stage) {
    const auto even = static_cast<std::size_t>(std::lround(static_cast<double>(stage) * of_stage));
    return std::min(even, layers - (stages - stage));  // the later ones have a layer each
  };
  const std::size_t first = begin(share.stage);
  return {first, (share.last() ? layers : begin(share.stage + 1)) - first};
}

std::size_t kv_replicas(const deck::Model& model, std::size_t tensors) {
  return std::max<std::size_t>(1, tensors / size(model.kv_heads));
}

}  // namespace tern::model
