#include "parameters/declaration.hpp"

#include <cmath>

namespace tern::model {
namespace {

std::vector<Declared> weights_of(const std::vector<Module>& modules, std::size_t inputs,
                                 Initial initial) {
  std::vector<Declared> weights;
  for (const Module& m : modules)
    weights.push_back({m.name + "/weight", {m.outputs, inputs}, initial, m.held});
  return weights;
}

/// Biases are divided like the outputs.
std::vector<Declared> biases_of(const std::vector<Module>& modules) {
  std::vector<Declared> biases;
  for (const Module& m : modules)
    biases.push_back({m.name + "/bias",
                      {m.outputs},
                      {},
                      m.held == Placement::columns ? Placement::whole : m.held});
  return biases;
}

}  // namespace

Initial initial_residual(const deck::Model& m) {
  if (m.init_zero_residual) return {};
  return {0, m.init_scaled_residual ? m.init_std / std::sqrt(2.0 * m.layers) : m.init_std};
}

Initial initial_embedding(const deck::Model& m) {
  return {0, m.embed_std > 0 ? m.embed_std : m.init_std};
}

Initial initial_head(const deck::Model& m) { return {0, m.head_std > 0 ? m.head_std : m.init_std}; }

void Declaration::linear(const std::vector<Module>& modules, std::size_t inputs, Initial initial,
                         bool bias) {
  const auto add_group = [&](std::vector<Declared> group) {
    banks_.push_back({{std::move(group)}, stages_});
  };
  add_group(weights_of(modules, inputs, initial));
  if (bias) add_group(biases_of(modules));
}

void Declaration::linears(std::size_t count,
                          const std::function<std::vector<Module>(std::size_t)>& modules_of,
                          std::size_t inputs, Initial initial) {
  FusedGroups bank{{}, stages_};
  for (std::size_t i = 0; i < count; ++i)
    bank.groups.push_back(weights_of(modules_of(i), inputs, initial));
  banks_.push_back(std::move(bank));
}

}  // namespace tern::model
