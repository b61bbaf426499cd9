/// Location of Tern's parameters in a Transformers model.
#pragma once
#include <string>
#include <vector>

#include "transformers/safetensors.hpp"

namespace tern::transformers::detail {

using Shape = std::vector<std::size_t>;

struct TensorLocation {
  std::string tensor;       // Transformers' name
  Shape shape;              // of that tensor
  bool transposed = false;  // stored as (inputs, outputs)
  std::size_t first = 0;    // first output of the parameter in the tensor
};

/// The tensor of the parameter's name, with dots, and its shape.
TensorLocation same_name(const std::string& parameter, const Shape& shape);

/// The part of the (possibly transposed) tensor that corresponds to a part of the parameter.
Part part_in_tensor(const TensorLocation& location, const Part& part);

}  // namespace tern::transformers::detail
