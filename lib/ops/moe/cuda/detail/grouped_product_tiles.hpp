/// Tiles of grouped products (grouped_product.hpp), as functions tested on the host.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"

namespace tern::ops::cuda::grouped {

/// y = x w^T and dx = dy w for the rows of each group; dw += dy^T x per group.
enum class Kind { forward, backward_input, backward_weight };

constexpr int depth = 64;      // summed indices per step
constexpr int piece_size = 8;  // 16-bit numbers in 16 bytes, the unit of copies
constexpr int warps = 4, threads = 32 * warps;

/// Tile of rows x columns, of which a warp computes warp_rows x warp_columns; `stages` steps in
/// shared memory; `resident` blocks per multiprocessor.
template <int Rows, int Columns, int WarpRows, int WarpColumns, int Stages, int Resident>
struct Tile {
  static constexpr int rows = Rows, columns = Columns, stages = Stages, resident = Resident;
  static constexpr int warp_rows = WarpRows, warp_columns = WarpColumns;
  static constexpr int stage_bytes = (rows + columns) * depth * 2;
  static constexpr int shared_bytes = stages * stage_bytes + rows * 4;
  static_assert(rows / warp_rows * (columns / warp_columns) == warps);
};
/// Many rows per group: compute-bound. Few: bound by reading the weights, of which each block keeps
/// as much as it can in flight.
using Large = Tile<128, 128, 64, 64, 3, 2>;
using Medium = Tile<64, 128, 32, 64, 3, 3>;
using Small = Tile<16, 64, 16, 16, 6, 3>;

enum class Size { small, medium, large };
/// Chosen by the mean number of rows per group.
TERN_FUNCTION constexpr Size size_for(std::size_t rows, std::size_t groups) {
  return rows <= 12 * groups ? Size::small : rows <= 48 * groups ? Size::medium : Size::large;
}
/// Most tiles of `height` rows that `rows` rows in `groups` groups can need.
TERN_FUNCTION constexpr std::size_t max_tiles(std::size_t rows, std::size_t groups,
                                              std::size_t height) {
  return rows / height + (rows < groups ? rows : groups);
}

/// Byte offset of a 16-byte piece of a row in a tile of `pieces` pieces per row, swizzled so that
/// the same piece of eight neighboring rows has no bank conflict.
TERN_FUNCTION constexpr int piece_offset(int row, int piece, int pieces) {
  return (row * pieces + (piece ^ (row & 7))) * 16;
}

}  // namespace tern::ops::cuda::grouped
