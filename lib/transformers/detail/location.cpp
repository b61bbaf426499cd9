#include "transformers/detail/location.hpp"

#include <algorithm>

namespace tern::transformers::detail {

TensorLocation same_name(const std::string& parameter, const Shape& shape) {
  TensorLocation location{parameter, shape};
  std::replace(location.tensor.begin(), location.tensor.end(), '/', '.');
  return location;
}

Part part_in_tensor(const TensorLocation& location, const Part& part) {
  if (location.transposed) return {part.column, part.columns, location.first + part.row, part.rows};
  if (location.shape.size() == 1)
    return {part.row, part.rows, location.first + part.column, part.columns};
  return {location.first + part.row, part.rows, part.column, part.columns};
}

}  // namespace tern::transformers::detail
