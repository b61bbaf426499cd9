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

template <class T>
struct Problem {
  const T* qkv;  // (N, width): queries are the first H E columns
  int width;
  const T *keys, *values;  // (pages, K, P, E)
  int page_shift;          // P = 2^page_shift
  int heads, kv_heads;
  float scale;
  const Segment* segments;
  const std::int32_t* tables;
};

/// Starts the copy of keys [first, first + 64) of a head and their values into the tiles at `keys`
/// and `values`; zeros from `end` on.
template <int E, class T>
__device__ void copy_pages(std::uint32_t keys, std::uint32_t values, const Problem<T>& p,
                           const std::int32_t* pages, int kv, int first, int end) {
  constexpr int pieces = E / piece_size, step = threads / pieces;
  const int row = static_cast<int>(threadIdx.x) / pieces;
  const int piece = static_cast<int>(threadIdx.x) % pieces;
  const int inside = (1 << p.page_shift) - 1;
#pragma unroll
  for (int i = 0; i < tile_rows; i += step) {
    const int key = first + row + i;
    const bool valid = key < end;
    const int page = valid ? pages[key >> p.page_shift] : 0;
    const std::int64_t at =
        ((static_cast<std::int64_t>(page) * p.kv_heads + kv) << p.page_shift) + (key & inside);
    const std::int64_t from = at * E + piece * piece_size;
    const int to = piece_offset(row + i, piece, row_bytes<E>);
    copy_16(keys + to, p.keys + from, valid);
    copy_16(values + to, p.values + from, valid);
  }
}

/// Stages of a tile of keys and one of values each.
template <int E>
struct Stages {
  std::uint32_t first;
  __device__ std::uint32_t keys(int stage) const {
    return first + stage * 2 * tile_bytes(row_bytes<E>);
  }
  __device__ std::uint32_t values(int stage) const {
    return keys(stage) + tile_bytes(row_bytes<E>);
  }
  template <class T>
  __device__ void copy(int stage, const Problem<T>& p, const std::int32_t* pages, int kv, int key,
                       int end) const {
    copy_pages<E>(keys(stage), values(stage), p, pages, kv, key, end);
  }
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
