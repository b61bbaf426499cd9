#include "parameters/share.hpp"

#include <algorithm>

namespace tern::model {
namespace {

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

Share share_of(const comm::Mesh& mesh) {
  return {size(mesh.tensor().rank()), size(mesh.extents().tensor), size(mesh.pipeline().rank()),
          size(mesh.extents().pipeline), &mesh};
}

Range layers_of(const deck::Model& model, const Share& share) {
  const std::size_t layers = size(model.layers), first = share.stage * layers / share.stages;
  return {first, (share.stage + 1) * layers / share.stages - first};
}

std::size_t kv_replicas(const deck::Model& model, std::size_t tensors) {
  return std::max<std::size_t>(1, tensors / size(model.kv_heads));
}

}  // namespace tern::model
