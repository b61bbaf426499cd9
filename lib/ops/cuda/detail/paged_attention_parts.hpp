/// Shared by the kernels of paged attention. Both are FlashAttention-2 (Dao 2023) with blocks of
/// four warps over tiles of 64 keys; tiles as in pattern_attention_tiles.hpp,
/// gathered from pages.
#pragma once
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/detail/pattern_attention_forward.hpp"
#include "ops/paged_cache.hpp"

namespace tern::ops::cuda::paged {

using namespace pattern_attention;

constexpr int piece_size = piece_bytes / 2;  // numbers, of 16 bits
template <int E>
constexpr int row_bytes = 2 * E;

/// Keys or values of a layer, (pages, K, P, E): numbers of T, or codes with undo (pages, K, P).
struct Pages {
  const void* data;
  const float* undo;
};

template <class T>
struct Problem {
  const T* qkv;  // (N, width): queries are the first H E columns
  int width;
  Pages keys, values;
  int page_shift;  // P = 2^page_shift
  int heads, kv_heads;
  float scale;
  const Segment* segments;
  const std::int32_t* tables;
};

/// Places within (pages, K, P) of 64 keys of a head from `first`, a multiple of 64, on: lane l has
/// that of the key 16 (l % 4) further, 0 from `end` on. Pages have 16 tokens or more, so those
/// between follow it. A tile's are read a tile ahead.
template <class T>
__device__ int places_of(const Problem<T>& p, const std::int32_t* pages, int kv, int first,
                         int end) {
  const int key = first + static_cast<int>(threadIdx.x) % tile_chunks * chunk_rows;
  if (key >= end) return 0;
  const int inside = (1 << p.page_shift) - 1;
  return ((pages[key >> p.page_shift] * p.kv_heads + kv) << p.page_shift) + (key & inside);
}

/// Bytes of a number in the cache.
template <bool coded>
constexpr int width = coded ? 1 : 2;

/// Stages of a tile of keys and one of values each, in shared memory, as they are in the cache; of
/// codes then the scales of both.
template <class T, int E, bool coded>
class Stages {
  static constexpr int row = width<coded> * E, tile = tile_bytes(row);
  static constexpr int scales = coded ? tile_rows * static_cast<int>(sizeof(float)) : 0;

 public:
  static constexpr int bytes = 2 * (tile + scales);  // of a stage
  explicit __device__ Stages(std::uint32_t first) : first_(first) {}

  __device__ std::uint32_t keys(int stage) const { return first_ + stage * bytes; }
  __device__ std::uint32_t values(int stage) const { return keys(stage) + tile; }
  /// Scales of the tile's keys, then of its values.
  __device__ std::uint32_t undo(int stage, int side) const {
    return keys(stage) + 2 * tile + side * scales;
  }

  /// Starts the copy of keys [first, first + 64) and of their values, with places_of() them; zeros
  /// from `end` on. By all threads.
  __device__ void copy(int stage, const Problem<T>& p, int places, int first, int end) const {
    constexpr int pieces = row / piece_bytes, step = threads / pieces;
    const int own = static_cast<int>(threadIdx.x) / pieces;
    const int piece = static_cast<int>(threadIdx.x) % pieces;
#pragma unroll
    for (int i = 0; i < tile_rows; i += step) {
      const int place = place_of(places, own + i), to = piece_offset(own + i, piece, row);
      const bool valid = first + own + i < end;
      const std::int64_t from = static_cast<std::int64_t>(place) * row + piece * piece_bytes;
      copy_16(keys(stage) + to, static_cast<const char*>(p.keys.data) + from, valid);
      copy_16(values(stage) + to, static_cast<const char*>(p.values.data) + from, valid);
    }
    if constexpr (coded) {
      static_assert(threads == 2 * tile_rows);
      const int side = static_cast<int>(threadIdx.x) / tile_rows;
      const int key = static_cast<int>(threadIdx.x) % tile_rows;
      const float* from = side == 0 ? p.keys.undo : p.values.undo;
      copy_4(undo(stage, side) + key * 4, from + place_of(places, key), first + key < end);
    }
  }

 private:
  __device__ static int place_of(int places, int key) {
    return __shfl_sync(0xffffffffu, places, key / chunk_rows) + key % chunk_rows;
  }
  std::uint32_t first_;
};

/// Scores of keys `column`, + 1, + 8 and + 9 become -inf from `end` on in row g, from `end_8` on in
/// row g + 8.
__device__ inline void mask_from(Result (&scores)[2], int column, int end, int end_8) {
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (column + n * 8 + i % 2 >= (i / 2 ? end_8 : end)) scores[n][i] = minus_infinity();
}

template <int E>
__device__ void scale_rows(Result (&sum)[E / 8], const float (&factor)[2]) {
#pragma unroll
  for (int n = 0; n < E / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[n][i] *= factor[i / 2];
}

}  // namespace tern::ops::cuda::paged
