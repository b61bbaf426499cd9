/// Kernels that end in fp8: a tile of the result is computed, scaled, rounded and written straight,
/// transposed or both.
///
/// A Source computes sixteen neighboring numbers of a row at a time, in float:
///
///     static constexpr int planes;  // parts of equal width that are computed together
///     __device__ void load(std::size_t row, std::size_t column, float (&to)[planes][16]) const;
///     // Column of the matrix that has `column` of a plane, out of `columns`.
///     __device__ std::size_t place(int plane, std::size_t column, std::size_t columns) const;
#pragma once
#include <cuda_fp8.h>

#include "base/fp8.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/elementwise/fp8_matrix.hpp"

namespace tern::ops::cuda::detail {

constexpr int rounding_threads = 256, chunk = 16,
              tile = 128;  // 8-bit numbers in 16 bytes; in a tile
constexpr int chunks = tile / chunk;

inline bool all_aligned_of(const Fp8Matrix& m) {
  return all_aligned(m.straight.data(), m.transposed.data(), m.scale.undo.data());
}

/// Where a kernel rounds to, by value; the scale comes from *magnitude times the headroom.
struct RoundingTarget {
  std::uint8_t *straight, *transposed;  // each or null
  const std::uint32_t* magnitude;
  float headroom;
  float* undo;
  std::uint32_t* saturated;  // or null

  RoundingTarget(const Fp8Matrix& to, Scaling scaling)
      : straight(to.straight.data()),
        transposed(to.transposed.data()),
        magnitude(to.scale.magnitude.data()),
        headroom(scaling == Scaling::earlier ? 2.0f : 1.0f),
        undo(to.scale.undo.data()),
        saturated(scaling == Scaling::earlier ? to.scale.saturated.data() : nullptr) {}

  template <class Format>
  __device__ float scale() const {
    return scale_for<Format>(headroom * float_of_bits(*magnitude));
  }
};

/// Raises the count of saturated numbers; few threads have any.
template <class Format>
__device__ void count_saturated(std::uint32_t* saturated, const float* values, int n, float scale) {
  if (!saturated) return;
  unsigned beyond = 0;
  for (int i = 0; i < n; ++i) beyond += fabsf(values[i]) * scale > Format::largest;
  if (beyond > 0) atomicAdd(saturated, beyond);
}

/// Four numbers, scaled and rounded; non-finite ones become NaN.
template <class Format>
__device__ std::uint32_t round_four(const float* from, float scale) {
  constexpr auto kind = std::is_same_v<Format, E4M3> ? __NV_E4M3 : __NV_E5M2;
  const auto two = [&](int at) -> std::uint32_t {  // x - x is NaN unless x is finite
    const float a = fmaf(from[at], scale, from[at] - from[at]);
    const float b = fmaf(from[at + 1], scale, from[at + 1] - from[at + 1]);
    return __nv_cvt_float2_to_fp8x2({a, b}, __NV_SATFINITE, kind);
  };
  return two(0) | two(2) << 16;
}

/// Four rows of four bytes to four columns.
__device__ inline void transpose_bytes(const std::uint32_t* rows, std::uint32_t* columns) {
  const std::uint32_t low01 = __byte_perm(rows[0], rows[1], 0x5140);
  const std::uint32_t low23 = __byte_perm(rows[2], rows[3], 0x5140);
  const std::uint32_t high01 = __byte_perm(rows[0], rows[1], 0x7362);
  const std::uint32_t high23 = __byte_perm(rows[2], rows[3], 0x7362);
  columns[0] = __byte_perm(low01, low23, 0x5410);
  columns[1] = __byte_perm(low01, low23, 0x7632);
  columns[2] = __byte_perm(high01, high23, 0x5410);
  columns[3] = __byte_perm(high01, high23, 0x7632);
}

/// Writes four columns of sixteen rows, gathered from word(row), row = 0 to 15: four neighboring
/// bytes of a row.
template <class Word>
__device__ void write_transposed(std::uint8_t* transposed, std::size_t rows, std::size_t column,
                                 std::size_t row, const Word& word) {
  std::uint32_t columns[4][4];  // (column, four rows)
#pragma unroll
  for (int four = 0; four < 4; ++four) {
    std::uint32_t in[4], out[4];
    for (int i = 0; i < 4; ++i) in[i] = word(4 * four + i);
    transpose_bytes(in, out);
    for (int i = 0; i < 4; ++i) columns[i][four] = out[i];
  }
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<uint4*>(transposed + (column + i) * rows + row) = {
        columns[i][0], columns[i][1], columns[i][2], columns[i][3]};
}

/// Planes side by side: [plane 0 | plane 1].
struct SideBySide {
  __device__ static std::size_t place(int plane, std::size_t column, std::size_t columns) {
    return plane * columns + column;
  }
};

/// A block takes a tile of every plane; rows and columns (of a plane) are multiples of 16. In
/// shared memory a row's chunks are swizzled by its group of 16 rows, against bank conflicts.
template <class Format, class Source>
__global__ void __launch_bounds__(rounding_threads)
    round_tiles(Source source, std::size_t rows, std::size_t columns, RoundingTarget to) {
  constexpr int planes = Source::planes;
  __shared__ uint4 staged[planes][tile * chunks];
  const float scale = to.template scale<Format>();
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *to.undo = undo_scale(scale);
  // From the end, which the kernel before left in the cache.
  const std::size_t first_row = std::size_t(gridDim.y - 1 - blockIdx.y) * tile;
  const std::size_t first_column = std::size_t(blockIdx.x) * tile;
  const int across = threadIdx.x % chunks, down = threadIdx.x / chunks;
  const std::size_t column = first_column + across * chunk;
#pragma unroll
  for (int r = down; r < tile; r += rounding_threads / chunks) {
    const std::size_t row = first_row + r;
    if (row >= rows || column >= columns) continue;
    float values[planes][chunk];
    source.load(row, column, values);
#pragma unroll
    for (int p = 0; p < planes; ++p) {
      count_saturated<Format>(to.saturated, values[p], chunk, scale);
      const uint4 rounded = {
          round_four<Format>(values[p], scale), round_four<Format>(values[p] + 4, scale),
          round_four<Format>(values[p] + 8, scale), round_four<Format>(values[p] + 12, scale)};
      if (to.straight)
        *reinterpret_cast<uint4*>(to.straight + row * planes * columns +
                                  source.place(p, column, columns)) = rounded;
      if (to.transposed) staged[p][r * chunks + (across ^ (r / chunk))] = rounded;
    }
  }
  if (!to.transposed) return;
  __syncthreads();
  // Each thread turns 16 rows of 4 columns: the 8 groups of rows across, the 32 words down.
  const std::size_t row = first_row + across * chunk, first = first_column + down * 4;
  if (row >= rows || first >= columns) return;
  const int word = 4 * ((down / 4) ^ across) + down % 4;
#pragma unroll
  for (int p = 0; p < planes; ++p) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(staged[p]);
    write_transposed(to.transposed, rows, source.place(p, first, columns), row,
                     [&](int r) { return words[(across * chunk + r) * 4 * chunks + word]; });
  }
}

/// `columns`: of a plane.
template <class Source>
void launch_rounding(const char* name, cudaStream_t stream, const Source& source, std::size_t rows,
                     std::size_t columns, const Fp8Matrix& to, Scaling scaling) {
  const dim3 tiles(blocks_for(columns, tile), blocks_for(rows, tile));
  const RoundingTarget target(to, scaling);
  if (to.format == Fp8Format::e4m3)
    round_tiles<E4M3><<<tiles, rounding_threads, 0, stream>>>(source, rows, columns, target);
  else
    round_tiles<E5M2><<<tiles, rounding_threads, 0, stream>>>(source, rows, columns, target);
  check_launch(name);
}

/// Sixteen numbers of a matrix.
__device__ inline void load_chunk(const bf16* from, float* to) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Pack pack = Pack::load(from + half * pack_size);
    for (int i = 0; i < pack_size; ++i) to[half * pack_size + i] = pack.value[i];
  }
}

struct Stored : SideBySide {
  static constexpr int planes = 1;
  const bf16* from;
  std::size_t columns;
  __device__ void load(std::size_t row, std::size_t column, float (&to)[planes][chunk]) const {
    load_chunk(from + row * columns + column, to[0]);
  }
};

/// The magnitude that an operation raises on the way to a matrix in fp8; null if it need not.
inline std::uint32_t* raised_magnitude(const Fp8Matrix& rounded, Scaling scaling,
                                       cudaStream_t stream) {
  if (!rounded.wanted() || scaling == Scaling::earlier || scaling == Scaling::known) return nullptr;
  if (scaling == Scaling::current)
    cudaMemsetAsync(rounded.scale.magnitude.data(), 0, sizeof(std::uint32_t), stream);
  return rounded.scale.magnitude.data();
}

/// Types whose results are also written in fp8 here: &precision compute = 'fp8' stores bf16.
template <class T>
inline constexpr bool rounds_to_fp8 = std::is_same_v<T, bf16>;
/// Whether a native kernel on T must decline because of a result in fp8.
template <class T>
bool cannot_round(const Fp8Matrix& rounded) {
  return !rounds_to_fp8<T> && rounded.wanted();
}

/// Rounds what an operation has written, with its magnitude, if wanted.
template <class T>
void round_stored(cudaStream_t stream, const Matrix<T>& written, const Fp8Matrix& rounded,
                  Scaling scaling) {
  if constexpr (rounds_to_fp8<T>)
    if (rounded.wanted())
      launch_rounding("fp8_round", stream, Stored{{}, written.data(), written.extent(1)},
                      written.extent(0), written.extent(1), rounded, scaling);
}

/// Whether an operation may round as it computes: both sizes in chunks, scale known beforehand.
inline bool rounds_on_the_way(const Fp8Matrix& rounded, Scaling scaling) {
  return rounded.wanted() && scaling == Scaling::earlier && !rounded.values_too;
}

}  // namespace tern::ops::cuda::detail
