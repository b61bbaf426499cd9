/// Grouped products on tensor cores: the kernel.
///
/// A block computes one tile of one group's result. Both operands stream through shared memory in
/// steps of 64 of the summed index, several in flight. Where groups divide the result's rows, there
/// are as many blocks as there can be tiles, and each finds its group from the offsets.
#pragma once
#include "ops/core/cuda/tensor_core.hpp"
#include "ops/moe/cuda/detail/grouped_product_tiles.hpp"

namespace tern::ops::cuda::grouped {

using namespace tensor_core;

/// A number of 16 bits, which only products and results interpret.
using Bits = std::uint16_t;

/// Rows of contiguous numbers; row r is row rows[r] of the data, or r where `rows` is null.
struct Stored {
  const Bits* data;
  const std::int32_t* rows;
  int width;
};

struct Arguments {
  const std::int32_t* offsets;  // (groups + 1)
  int groups;
  Stored a, b;
  std::int64_t group_b, group_c;  // element strides between the groups' matrices
  void* c;                        // 16-bit numbers, or float for the gradient of weights
  int m, n, k;                    // shape of a group's product; m or k is its number of rows
};

/// Order of an operand's numbers, in memory and in its tile: along the summed index, or along the
/// result's.
enum class Order { along_depth, along_result };

/// One operand's tile of Extent x depth, swizzled by piece_offset().
template <Order order, int Extent>
struct OperandTile {
  static constexpr int rows = order == Order::along_depth ? Extent : depth;
  static constexpr int pieces = (order == Order::along_depth ? depth : Extent) / piece_size;
  static_assert(pieces % 8 == 0);

  __device__ static std::uint32_t address(std::uint32_t tile, int row, int piece) {
    return tile + piece_offset(row, piece, pieces);
  }
  /// Starts the copy. row_at(row): start of the row's part of the tile, null for zeros; `width`:
  /// its valid numbers.
  template <class RowAt>
  __device__ static void copy(std::uint32_t tile, const Bits* anywhere, int width,
                              const RowAt& row_at) {
#pragma unroll
    for (int i = 0; i < rows * pieces / threads; ++i) {
      const int at = i * threads + static_cast<int>(threadIdx.x);
      const int row = at / pieces, piece = at % pieces;
      const Bits* from = row_at(row);
      const bool valid = from != nullptr && piece * piece_size < width;
      copy_16(address(tile, row, piece), valid ? from + piece * piece_size : anywhere, valid);
    }
  }
  /// 16 x 16 as a left operand: from `row` of the result and `k` of the depth on.
  __device__ static void left(Left& to, std::uint32_t tile, int lane, int row, int k) {
    if constexpr (order == Order::along_depth)
      load_matrices(to, address(tile, row + lane % 16, k / piece_size + lane / 16));
    else
      load_transposed(to,
                      address(tile, k + lane % 8 + lane / 16 * 8, row / piece_size + lane / 8 % 2));
  }
  /// The same as right operands of two 16 x 8 products.
  __device__ static void right(Left& to, std::uint32_t tile, int lane, int column, int k) {
    if constexpr (order == Order::along_depth)
      load_matrices(
          to, address(tile, column + lane % 8 + lane / 16 * 8, k / piece_size + lane / 8 % 2));
    else
      load_transposed(to, address(tile, k + lane % 16, column / piece_size + lane / 16));
  }
};

/// Position of a block's tile.
struct GroupTile {
  int group = -1, first = 0, rows = 0;  // the group's rows: [first, first + rows)
  int i0 = 0;                           // the tile's first row of the group's result
};

/// Finds tile `number` among the tiles of `height` rows of all groups. Every warp scans 32 groups
/// at a time.
__device__ inline GroupTile find_tile(const std::int32_t* offsets, int groups, int height,
                                      int number) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  GroupTile place;
  for (int base = 0; base < groups; base += 32) {
    const int group = base + lane;
    const int first = group < groups ? offsets[group] : 0;
    const int rows = group < groups ? offsets[group + 1] - first : 0;
    const int tiles = (rows + height - 1) / height;
    int end = tiles;  // tiles up to and including this group
    for (int step = 1; step < 32; step *= 2) {
      const int before = __shfl_up_sync(0xffffffffu, end, step);
      if (lane >= step) end += before;
    }
    const unsigned beyond = __ballot_sync(0xffffffffu, number < end);
    if (beyond != 0) {
      const int owner = __ffs(static_cast<int>(beyond)) - 1;
      place.group = base + owner;
      place.first = __shfl_sync(0xffffffffu, first, owner);
      place.rows = __shfl_sync(0xffffffffu, rows, owner);
      place.i0 = (number - __shfl_sync(0xffffffffu, end - tiles, owner)) * height;
      return place;
    }
    number -= __shfl_sync(0xffffffffu, end, 31);
  }
  return place;
}

/// A block's work on one tile; V: bf16 or fp16.
template <class V, Kind kind, class T>
struct Block {
  using A = OperandTile<kind == Kind::backward_weight ? Order::along_result : Order::along_depth,
                        T::rows>;
  using B =
      OperandTile<kind == Kind::forward ? Order::along_depth : Order::along_result, T::columns>;
  static constexpr int down = T::warp_rows / 16, across = T::warp_columns / 16;

  const Arguments& args;
  GroupTile place;
  int j0;
  char* shared;
  std::int32_t* ids;  // ids of a's rows, -1 beyond the group
  int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int row0 = warp / (T::columns / T::warp_columns) * T::warp_rows;
  int column0 = warp % (T::columns / T::warp_columns) * T::warp_columns;
  Result sum[down][2 * across] = {};

  __device__ int k() const { return kind == Kind::backward_weight ? place.rows : args.k; }
  __device__ int m() const { return kind == Kind::backward_weight ? args.m : place.rows; }
  __device__ std::uint32_t stage(int number) const {
    return shared_address(shared) + number % T::stages * T::stage_bytes;
  }

  __device__ void find_rows() const {
    for (int r = static_cast<int>(threadIdx.x); r < T::rows; r += threads) {
      const int row = place.first + place.i0 + r;
      const bool inside = place.i0 + r < place.rows;
      ids[r] = !inside ? -1 : args.a.rows ? args.a.rows[row] : row;
    }
  }

  __device__ static const Bits* row_of(const Stored& of, int row, int column) {
    const std::int64_t at = of.rows ? of.rows[row] : row;
    return of.data + at * of.width + column;
  }

  __device__ void copy(int step) const {
    const std::uint32_t to = stage(step), to_b = to + T::rows * depth * 2;
    const int k0 = step * depth, left = k() - k0;
    const Bits* w = args.b.data + place.group * args.group_b;
    if constexpr (kind == Kind::backward_weight) {
      A::copy(to, args.a.data, args.m - place.i0, [&](int r) {
        return r < left ? row_of(args.a, place.first + k0 + r, place.i0) : nullptr;
      });
      B::copy(to_b, args.b.data, args.n - j0,
              [&](int r) { return r < left ? row_of(args.b, place.first + k0 + r, j0) : nullptr; });
    } else {
      A::copy(to, args.a.data, left, [&](int r) {
        return ids[r] < 0 ? nullptr
                          : args.a.data + static_cast<std::int64_t>(ids[r]) * args.a.width + k0;
      });
      if constexpr (kind == Kind::forward)
        B::copy(to_b, args.b.data, left, [&](int r) {
          return j0 + r < args.n ? w + static_cast<std::int64_t>(j0 + r) * args.k + k0 : nullptr;
        });
      else
        B::copy(to_b, args.b.data, args.n - j0, [&](int r) {
          return r < left ? w + static_cast<std::int64_t>(k0 + r) * args.n + j0 : nullptr;
        });
    }
  }

  __device__ void multiply_step(int step) {
    const std::uint32_t a_tile = stage(step), b_tile = a_tile + T::rows * depth * 2;
#pragma unroll
    for (int kk = 0; kk < depth; kk += 16) {
      Left a[down];
#pragma unroll
      for (int i = 0; i < down; ++i) A::left(a[i], a_tile, lane, row0 + 16 * i, kk);
#pragma unroll
      for (int j = 0; j < across; ++j) {
        Left b;
        B::right(b, b_tile, lane, column0 + 16 * j, kk);
#pragma unroll
        for (int i = 0; i < down; ++i) {
          multiply<V>(sum[i][2 * j], a[i], b[0], b[1]);
          multiply<V>(sum[i][2 * j + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  __device__ void run() {
    const int steps = (k() + depth - 1) / depth;
    for (int s = 0; s < T::stages - 1; ++s) {
      if (s < steps) copy(s);
      end_copies();
    }
    for (int s = 0; s < steps; ++s) {
      wait_for_copies_but<T::stages - 2>();
      __syncthreads();  // this step has arrived, and the one before is free
      if (s + T::stages - 1 < steps) copy(s + T::stages - 1);
      end_copies();
      multiply_step(s);
    }
    if constexpr (kind == Kind::backward_weight)
      add_results();
    else
      write_results();
  }

  /// Through shared memory, so that each thread writes 16 bytes at once.
  __device__ void write_results() const {
    constexpr int pieces = T::columns / piece_size;
    __syncthreads();  // the last step is free
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int j = 0; j < 2 * across; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = row0 + 16 * i + 8 * half + lane / 4, piece = column0 / piece_size + j;
          *reinterpret_cast<std::uint32_t*>(shared + piece_offset(row, piece, pieces) +
                                            lane % 4 * 4) =
              round_pair<V>(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
        }
    __syncthreads();
    Bits* c = static_cast<Bits*>(args.c) +
              static_cast<std::int64_t>(place.first + place.i0) * args.n + j0;
#pragma unroll
    for (int i = 0; i < T::rows * pieces / threads; ++i) {
      const int at = i * threads + static_cast<int>(threadIdx.x);
      const int row = at / pieces, piece = at % pieces;
      if (place.i0 + row < m() && j0 + piece * piece_size < args.n)
        *reinterpret_cast<uint4*>(c + static_cast<std::int64_t>(row) * args.n +
                                  piece * piece_size) =
            *reinterpret_cast<const uint4*>(shared + piece_offset(row, piece, pieces));
    }
  }

  __device__ void add_results() const {
    float* c = static_cast<float*>(args.c) + place.group * args.group_c;
#pragma unroll
    for (int i = 0; i < down; ++i)
#pragma unroll
      for (int j = 0; j < 2 * across; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = place.i0 + row0 + 16 * i + 8 * half + lane / 4;
          const int column = j0 + column0 + 8 * j + lane % 4 * 2;
          if (row >= args.m || column >= args.n) continue;
          float2* to =
              reinterpret_cast<float2*>(c + static_cast<std::int64_t>(row) * args.n + column);
          const float2 old = *to;
          *to = {old.x + sum[i][j][2 * half], old.y + sum[i][j][2 * half + 1]};
        }
  }
};

/// blockIdx.x: tiles along the columns; y: tiles along the rows, of all groups, or of group z for
/// backward_weight.
template <class V, Kind kind, class T>
__global__ void __launch_bounds__(threads, T::resident) product(const Arguments args) {
  extern __shared__ __align__(128) char shared[];
  const int number = static_cast<int>(blockIdx.y);
  GroupTile place;
  if constexpr (kind == Kind::backward_weight) {
    const int group = static_cast<int>(blockIdx.z), first = args.offsets[group];
    place = {group, first, args.offsets[group + 1] - first, number * T::rows};
    if (place.rows == 0) return;
  } else {
    place = find_tile(args.offsets, args.groups, T::rows, number);
    if (place.group < 0) return;
  }
  Block<V, kind, T> block{args, place, static_cast<int>(blockIdx.x) * T::columns, shared,
                          reinterpret_cast<std::int32_t*>(shared + T::stages * T::stage_bytes)};
  if constexpr (kind != Kind::backward_weight) {
    block.find_rows();
    __syncthreads();
  }
  block.run();
}

}  // namespace tern::ops::cuda::grouped
