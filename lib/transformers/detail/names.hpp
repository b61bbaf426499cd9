/// Location of Tern's parameters in a Transformers model.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "transformers/safetensors.hpp"

namespace tern::transformers::detail {

struct TensorLocation {
  std::string tensor;              // Transformers' name
  std::vector<std::size_t> shape;  // of that tensor
  bool transposed = false;         // stored as (inputs, outputs)
  std::size_t first = 0;           // first output of the parameter in the tensor
};

/// `shape`: of the whole parameter. Throws InternalError if the architecture has no such parameter.
TensorLocation location_of(const std::string& architecture, const std::string& name,
                           const std::vector<std::size_t>& shape);

/// The location of an expert's matrix in files that fuse all experts of a layer:
/// mlp.experts.gate_up_proj (experts, 2 F, D) and mlp.experts.down_proj (experts, D, F). Empty for
/// other parameters.
std::optional<TensorLocation> fused_location(const std::string& name,
                                             const std::vector<std::size_t>& shape,
                                             std::size_t experts);

/// The part of the (possibly transposed) tensor that corresponds to a part of the parameter.
Part part_in_tensor(const TensorLocation& location, const Part& part);

}  // namespace tern::transformers::detail
