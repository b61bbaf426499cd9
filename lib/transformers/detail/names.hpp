/// Where a parameter of Tern stands in a model of Transformers.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "transformers/safetensors.hpp"

namespace tern::transformers::detail {

struct Place {
  std::string tensor;              // Transformers' name
  std::vector<std::size_t> shape;  // of that tensor
  bool transposed = false;         // it keeps (inputs, outputs)
  std::size_t first = 0;           // of the parameter among the tensor's outputs
};

/// `shape`: the whole parameter's. Throws InternalError if the architecture has none of that name.
Place place_of(const std::string& architecture, const std::string& name,
               const std::vector<std::size_t>& shape);

/// The same of an expert's matrix in files that keep all experts of a layer in one tensor:
/// mlp.experts.gate_up_proj (experts, 2 F, D) and mlp.experts.down_proj (experts, D, F); nothing of
/// other parameters.
std::optional<Place> fused_place(const std::string& name, const std::vector<std::size_t>& shape,
                                 std::size_t experts);

/// The part of the tensor, transposed where that is, that a part of the parameter is.
Part part_in_tensor(const Place& place, const Part& part);

}  // namespace tern::transformers::detail
