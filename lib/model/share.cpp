#include "model/share.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "model/declaration.hpp"

namespace tern::model {
namespace {

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// Whether `tensor` ranks can divide the numbers; the reasons against go to `why`, unless null.
bool divides(const std::vector<Divided>& numbers, std::int64_t tensor,
             std::vector<std::string>* why) {
  bool possible = true;
  for (const Divided& d : numbers) {
    if (d.count % tensor == 0 || (d.shared && tensor % d.count == 0)) continue;
    possible = false;
    if (!why) continue;
    if (d.shared)
      why->push_back(
          fmt::format("&model {} = {} is neither a multiple nor a divisor of it", d.name, d.count));
    else
      why->push_back(
          fmt::format("&model {} = {} is no multiple of it (nearest: {}{})", d.name, d.count,
                      d.count > tensor ? fmt::format("{} or ", d.count / tensor * tensor) : "",
                      (d.count / tensor + 1) * tensor));
  }
  return possible;
}

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

void check_division(const deck::Model& model, std::int64_t tensor, std::int64_t pipeline) {
  const std::vector<Divided> numbers = divided(model);
  std::vector<std::string> why;
  if (!divides(numbers, tensor, &why)) {
    std::vector<std::int64_t> work;
    for (std::int64_t ranks = 1; ranks <= 64; ranks *= 2)
      if (divides(numbers, ranks, nullptr)) work.push_back(ranks);
    user_error("&parallel tensor = {}: {}; this model takes tensor = {}", tensor,
               fmt::join(why, ", "), fmt::join(work, ", "));
  }
  if (model.layers < pipeline)
    user_error("&parallel pipeline = {} is more than the model's {} layers: write {} or less",
               pipeline, model.layers, model.layers);
}

}  // namespace tern::model
