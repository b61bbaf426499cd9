/// Layout of tensors: chunks, flat ranges as rectangular boxes, and distribution over ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/shape.hpp"
#include "checkpoint/checkpoint.hpp"

namespace tern::checkpoint::detail {

/// Chunk shape of a dataset: at most 2 MiB of float32, contiguous in flat order, no larger than the
/// dataset. Empty for scalars and empty datasets, which HDF5 cannot chunk.
Shape chunk_shape(const Shape& shape);

/// A rectangular part of a row-major array that is contiguous in flat order.
struct Box {
  Shape start, size;
  std::size_t count;  // elements
};

/// The flat range [first, first + count) as boxes in flat order: at most three for a matrix (rest
/// of the first row, whole rows, start of the last row); one with empty start and size for a
/// scalar.
std::vector<Box> boxes_of_range(const Shape& shape, std::size_t first, std::size_t count);

/// A flat range of a tensor and its offset in a rank's buffer or shard.
struct Extent {
  std::size_t tensor, first, count;
  std::size_t offset;  // elements, in the buffer of `rank`
  int rank = 0;
};

/// Sorts the extents by tensor and position and trims overlaps with earlier ones. Throws
/// std::runtime_error naming the first tensor with a gap.
std::vector<Extent> cover(const std::vector<Tensor>& tensors, std::vector<Extent> extents);

/// `rows` extents of one rank in consecutive rows, contiguous in its shard: its part of a matrix
/// divided by columns. One row: any extent.
struct Band {
  Extent extent;  // the first row's
  std::size_t rows = 1;
};
/// The extents of one tensor, as returned by cover(), merged into bands.
std::vector<Band> bands(const Shape& shape, const std::vector<Extent>& extents);

}  // namespace tern::checkpoint::detail
