#pragma once
#include <cstddef>
#include <functional>
#include <numeric>
#include <vector>

namespace tern {

/// Extents of a row-major array; empty for a scalar.
using Shape = std::vector<std::size_t>;

inline std::size_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

}  // namespace tern
