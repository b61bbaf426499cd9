#include "optimizer/adamw.hpp"

#include "optimizer/kind.hpp"

namespace tern::optimizer {
namespace {

template <class T>
std::unique_ptr<Update<T>> make(const deck::Optimizer& optimizer, const model::ParameterTree& tree,
                                Range owned, std::size_t decayed, Arena& arena) {
  return std::make_unique<AdamW<T>>(optimizer, Range{0, tree.span()}, owned, decayed, arena);
}

/// Matrices and vectors.
Cost cost(const Owned& owned) { return {{adamw_pass(owned.parameters, owned.copy, 2)}}; }

}  // namespace

/// Reads and writes master weights and both moments, reads the gradient and writes the copy.
Cost::Pass adamw_pass(double parameters, double copy, double kernels) {
  return {(28 + copy) * parameters, kernels};
}

extern const Kind adamw{"adamw", {make<float>, make<bf16>, make<fp16>, make<double>}, cost};

}  // namespace tern::optimizer
