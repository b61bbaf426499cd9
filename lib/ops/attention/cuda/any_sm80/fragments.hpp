/// Shared by the three kernels under any mask: views, copies of tiles into shared memory, the
/// two products, the walk over the tiles that a block needs.
#pragma once
#include "ops/attention/cuda/any_sm80/tiles.hpp"
#include "ops/core/cuda/tensor_core.hpp"

namespace tern::ops::cuda::any_sm80 {

using namespace tensor_core;

constexpr float log2_of_e = 1.4426950408889634f, ln_2 = 0.6931471805599453f;

/// A (B, T, heads, E) view; strides in numbers.
template <class T>
struct HeadsView {
  T* data;
  std::int64_t batch;
  int row, head;

  __device__ T* at(int b, int h, int first_row) const {
    return data + b * batch + static_cast<std::int64_t>(h) * head +
           static_cast<std::int64_t>(first_row) * row;
  }
};

struct Lane {
  int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int row = lane / 4, pair = lane % 4;  // g and t of tensor_core.hpp
};

__device__ inline float minus_infinity() { return __int_as_float(0xff800000); }

template <class T, int E>
constexpr HeadRow row_of{E, sizeof(T)};

/// Starts the copy of rows [first, first + 64) of a head into the tile at `to`; zeros from row
/// `rows` on.
template <int E, class T>
__device__ void copy_tile(std::uint32_t to, const HeadsView<const T>& from, int b, int h, int first,
                          int rows) {
  constexpr int row_bytes = E * sizeof(T), pieces = row_bytes / piece_bytes;
  constexpr int piece_size = piece_bytes / sizeof(T), step = threads / pieces;
  const int row = static_cast<int>(threadIdx.x) / pieces;
  const int piece = static_cast<int>(threadIdx.x) % pieces;
  const T* source = from.at(b, h, first + row) + piece * piece_size;
#pragma unroll
  for (int i = 0; i < tile_rows; i += step)
    copy_16(to + piece_offset(row + i, piece, row_bytes),
            source + static_cast<std::int64_t>(i) * from.row, first + row + i < rows);
}

/// Addresses of parts of tiles for load_matrices: part (chunk of 16 rows, pair of pieces), which is
/// 16 x 16 numbers, or 16 x 8 of float32.
template <int row_bytes>
class Parts {
 public:
  /// As a left operand, and, of 16 bits, transposed as a right one.
  __device__ static Parts rows_first(int lane) { return Parts(lane % 16, lane / 16); }
  /// As the right operand of a product with the transposed tile.
  __device__ static Parts rows_last(int lane) {
    return Parts(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
  __device__ std::uint32_t at(std::uint32_t tile, int chunk, int pair) const {
    return tile + chunk * (chunk_rows * row_bytes) + row_ + (piece_ ^ (pair * 2 * piece_bytes));
  }

 private:
  __device__ Parts(int row, int high)
      : row_(row * row_bytes), piece_((high ^ swizzle(row, row_bytes)) * piece_bytes) {}
  int row_, piece_;
};

template <int row_bytes>
constexpr int part_count = row_bytes / (2 * piece_bytes);

/// 16 rows as left operands, in registers.
template <int row_bytes>
struct KeptRows {
  Left part[part_count<row_bytes>];
  __device__ void take(const Parts<row_bytes>& parts, std::uint32_t tile, int chunk) {
#pragma unroll
    for (int i = 0; i < part_count<row_bytes>; ++i)
      load_matrices(part[i], parts.at(tile, chunk, i));
  }
  __device__ void get(int i, Left& to) const {
    for (int r = 0; r < 4; ++r) to[r] = part[i][r];
  }
};
/// The same, read from shared memory at every use.
template <int row_bytes>
struct SharedRows {
  Parts<row_bytes> parts = Parts<row_bytes>::rows_first(0);
  std::uint32_t tile;
  int chunk;
  __device__ void take(const Parts<row_bytes>& of, std::uint32_t in, int number) {
    parts = of, tile = in, chunk = number;
  }
  __device__ void get(int i, Left& to) const { load_matrices(to, parts.at(tile, chunk, i)); }
};

/// c (16 x 16) = rows (16 x E) times the transposed chunk of a tile (16 x E).
template <class T, int row_bytes, class Rows>
__device__ void product(Result (&c)[2], const Rows& rows, const Parts<row_bytes>& last,
                        std::uint32_t tile, int chunk) {
#pragma unroll
  for (int i = 0; i < 4; ++i) c[0][i] = c[1][i] = 0;
#pragma unroll
  for (int i = 0; i < part_count<row_bytes>; ++i) {
    Left a, b;
    rows.get(i, a);
    load_matrices(b, last.at(tile, chunk, i));
    multiply<T>(c[0], a, b[0], b[1]);
    multiply<T>(c[1], a, b[2], b[3]);
  }
}

/// Chunks of a tile as right operands of sums over their rows.
template <class T, int E>
struct Columns {
  Parts<E * sizeof(T)> parts = Parts<E * sizeof(T)>::rows_first(static_cast<int>(threadIdx.x) % 32);

  /// sum (16 x E) += a (16 x 16) times the chunk (16 x E).
  __device__ void add_product(Result (&sum)[E / 8], const Left& a, std::uint32_t tile,
                              int chunk) const {
#pragma unroll
    for (int i = 0; i < E / 16; ++i) {
      Left b;
      load_transposed(b, parts.at(tile, chunk, i));
      multiply<T>(sum[2 * i], a, b[0], b[1]);
      multiply<T>(sum[2 * i + 1], a, b[2], b[3]);
    }
  }
};
/// No instruction transposes words: a lane reads columns g of rows 2t and 2t + 1 one by one, in the
/// order in which round_results() has columns. The swizzle keeps 32 lanes in 32 banks.
template <int E>
struct Columns<float, E> {
  static constexpr int row_bytes = E * 4;
  int pair = static_cast<int>(threadIdx.x) % 4, column = static_cast<int>(threadIdx.x) % 32 / 4;

  __device__ std::uint32_t at(int row, int n) const {
    return piece_offset(row, 2 * n + column / 4, row_bytes) + column % 4 * 4;
  }
  __device__ void add_product(Result (&sum)[E / 8], const Left (&a)[2], std::uint32_t tile,
                              int chunk) const {
    const std::uint32_t from = tile + chunk * (chunk_rows * row_bytes);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int n = 0; n < E / 8; ++n) {
        const int row = half * 8 + pair * 2;
        multiply<float>(sum[n], a[half], load_word(from + at(row, n)),
                        load_word(from + at(row + 1, n)));
      }
  }
};

/// 16 x 16 rounded numbers as left operands.
template <class T>
using Rounded = std::conditional_t<is_half<T>, Left, Left[2]>;
template <class T>
__device__ void round(Rounded<T>& to, const Result (&c)[2]) {
  if constexpr (is_half<T>)
    round_results<T>(to, c);
  else
    round_results(to, c);
}

/// Keys that a row attends to, for fast tests.
struct Seen {
  struct Range {
    int first;
    unsigned length;
    __device__ bool holds(int key) const { return static_cast<unsigned>(key - first) < length; }
  } context, own;

  __device__ explicit Seen(const KeySpans& spans)
      : context(range(spans.context)), own(range(spans.own)) {}
  __device__ bool holds(int key) const { return context.holds(key) | own.holds(key); }

 private:
  __device__ static Range range(const Span& s) {
    return {s.first, s.empty() ? 0u : static_cast<unsigned>(s.last - s.first)};
  }
};

template <class T>
__device__ void store_pair(char* to, float low, float high) {
  if constexpr (is_half<T>)
    *reinterpret_cast<std::uint32_t*>(to) = round_pair<T>(low, high);
  else
    *reinterpret_cast<float2*>(to) = {low, high};
}

/// 16 rows of a head from `first` on (those below `rows`) = factor * sum, through the warp's own
/// chunk of a tile in shared memory. factor, factor_8: of rows g and g + 8.
template <int E, class T>
__device__ void write_rows(const Lane& lane, const Result (&sum)[E / 8], float factor,
                           float factor_8, char* tile, const HeadsView<T>& to, int b, int h,
                           int first, int rows) {
  constexpr int row_bytes = E * sizeof(T), pieces = row_bytes / piece_bytes;
  constexpr int piece_size = piece_bytes / sizeof(T);
  char* chunk = tile + lane.warp * chunk_rows * row_bytes;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < E / 8; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float f = half ? factor_8 : factor;
      const int column = n * 8 + lane.pair * 2, row = lane.row + 8 * half;
      char* pair = chunk + piece_offset(row, column / piece_size, row_bytes) +
                   column % piece_size * static_cast<int>(sizeof(T));
      store_pair<T>(pair, f * sum[n][2 * half], f * sum[n][2 * half + 1]);
    }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < chunk_rows * pieces / 32; ++i) {
    const int n = i * 32 + lane.lane, row = n / pieces, piece = n % pieces;
    if (first + row < rows)
      *reinterpret_cast<uint4*>(to.at(b, h, first + row) + piece * piece_size) =
          *reinterpret_cast<const uint4*>(chunk + piece_offset(row, piece, row_bytes));
  }
  __syncwarp();
}

/// Removes and returns the lowest bit of a non-empty set.
__device__ inline int take_lowest(unsigned& set) {
  const int lowest = __ffs(static_cast<int>(set)) - 1;
  set &= set - 1;
  return lowest;
}

/// Iterates over the tiles of [0, count) that meet the block's own: every warp tests 32 at a time,
/// one per lane, and all warps find the same.
template <class Meets>
class TileWalk {
 public:
  __device__ TileWalk(int count, const Meets& meets) : meets_(meets), count_(count) { restart(); }
  __device__ void restart() { base_ = -32, left_ = 0; }
  /// The next tile; -1 after the last.
  __device__ int next() {
    while (left_ == 0) {
      base_ += 32;
      if (base_ >= count_) return -1;
      const int tile = base_ + static_cast<int>(threadIdx.x) % 32;
      left_ = __ballot_sync(0xffffffffu, tile < count_ && meets_(tile));
    }
    return base_ + take_lowest(left_);
  }

 private:
  Meets meets_;
  int count_, base_;
  unsigned left_;
};

/// For a warp's own 16 rows and a tile of the other axis: bit i says whether some, or all, pairs
/// with chunk i are allowed.
struct ChunkStates {
  unsigned some, all;
  /// Lane i tests chunk i.
  __device__ ChunkStates(int lane, const SpanHull& hull, int first_key)
      : some(__ballot_sync(0xffffffffu, lane < tile_chunks &&
                                            hull.widest.meets(first_key, first_key + chunk_rows))),
        all(__ballot_sync(0xffffffffu, lane < tile_chunks &&
                                           hull.common.covers(first_key, first_key + chunk_rows))) {
  }
  __device__ bool mixed(int chunk) const { return !(all >> chunk & 1); }
};

}  // namespace tern::ops::cuda::any_sm80
