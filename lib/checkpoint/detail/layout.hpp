/// Where the elements of tensors lie: chunks, rectangular boxes of flat ranges, and which rank
/// holds what.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/shape.hpp"
#include "checkpoint/checkpoint.hpp"

namespace tern::checkpoint::detail {

/// The chunk of a dataset: at most 2 MiB of float32, contiguous in the flat order, no larger than
/// the dataset. Empty for scalars and datasets without elements, which HDF5 cannot chunk.
Shape chunk_shape(const Shape& shape);

/// A rectangle of a row-major array that is contiguous in the flat order.
struct Box {
  Shape start, size;
  std::size_t count;  // elements
};

/// The flat range [first, first + count) as boxes in flat order: of a matrix at most three (the
/// rest of the first row, whole rows, the start of the last row), of a scalar one with empty start
/// and size.
std::vector<Box> boxes_of_range(const Shape& shape, std::size_t first, std::size_t count);

/// A flat range of a tensor and where a rank's buffer or shard holds it.
struct Extent {
  std::size_t tensor, first, count;
  std::size_t offset;  // elements, in the buffer of `rank`
  int rank = 0;
};

/// Sorts the extents by tensor and place and cuts off what an earlier one holds already. Throws
/// std::runtime_error naming the first tensor with a gap.
std::vector<Extent> cover(const std::vector<Tensor>& tensors, std::vector<Extent> extents);

/// `rows` extents of one rank, each a row behind the one before, that follow each other in its
/// shard: what it holds of a matrix whose columns are divided. One row: any extent.
struct Band {
  Extent extent;  // the first row's
  std::size_t rows = 1;
};
/// The extents of one tensor, as cover() gives them, in as few bands as there are.
std::vector<Band> bands(const Shape& shape, const std::vector<Extent>& extents);

}  // namespace tern::checkpoint::detail
