/// The tiles of grouped products (grouped_product.hpp), as functions that the host tests.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"

namespace tern::ops::cuda::grouped {

/// y = x w^T and dx = dy w by rows of groups; dw += dy^T x by groups.
enum class Kind { forward, backward_input, backward_weight };

constexpr int depth = 64;      // of a step
constexpr int piece_size = 8;  // bf16 numbers in 16 bytes, the unit of copies
constexpr int warps = 4, threads = 32 * warps;

/// A tile of `rows` x `columns`, of which a warp makes warp_rows x warp_columns; `stages` steps
/// are held in shared memory; blocks that a multiprocessor should hold.
template <int Rows, int Columns, int WarpRows, int WarpColumns, int Stages, int Resident>
struct Tile {
  static constexpr int rows = Rows, columns = Columns, stages = Stages, resident = Resident;
  static constexpr int warp_rows = WarpRows, warp_columns = WarpColumns;
  static constexpr int stage_bytes = (rows + columns) * depth * 2;
  static constexpr int shared_bytes = stages * stage_bytes + rows * 4;
  static_assert(rows / warp_rows * (columns / warp_columns) == warps);
};
/// Many rows a group: bound by arithmetic. Few: bound by the reading of the weights, of which each
/// block keeps as much as it can on its way.
using Large = Tile<128, 128, 64, 64, 3, 2>;
using Medium = Tile<64, 128, 32, 64, 3, 3>;
using Small = Tile<16, 64, 16, 16, 6, 3>;

enum class Size { small, medium, large };
/// By the mean number of rows of a group.
TERN_FUNCTION constexpr Size size_for(std::size_t rows, std::size_t groups) {
  return rows <= 12 * groups ? Size::small : rows <= 48 * groups ? Size::medium : Size::large;
}
/// The most tiles of `height` rows that `rows` rows in `groups` groups can need.
TERN_FUNCTION constexpr std::size_t most_tiles(std::size_t rows, std::size_t groups,
                                               std::size_t height) {
  return rows / height + (rows < groups ? rows : groups);
}

/// Where a 16-byte piece of a row stands within a tile whose rows have `pieces` of them, in bytes:
/// pieces are exchanged within a row such that one piece of eight neighbouring rows never meets a
/// bank of shared memory twice.
TERN_FUNCTION constexpr int piece_offset(int row, int piece, int pieces) {
  return (row * pieces + (piece ^ (row & 7))) * 16;
}

}  // namespace tern::ops::cuda::grouped
