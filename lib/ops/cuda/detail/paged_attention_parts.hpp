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
  PageMemory keys, values;  // (pages, K, P, E), with codes undo (pages, K, P)
  int page_shift;           // P = 2^page_shift
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

// ---- prompts: queries by keys ----

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

// ---- single rows: keys, or numbers of their values, by queries ----

constexpr int tile_queries = 8;

/// Up to 8 queries of a split, and what a warp has of their results: a lane has numbers g and g + 8
/// of each 16 of a value, for queries 2t and 2t + 1, and of the weights those of keys g and g + 8.
template <class T, int E>
struct Queries {
  std::uint32_t q[E / 16][2];  // as a right operand
  Result sum[E / 16];
  float largest[2], total[2];  // total: of the lane's keys

  /// From `rows` of 8 in shared memory; times `factor`, a pair.
  __device__ void begin(const Lane& lane, std::uint32_t rows, int first, std::uint32_t factor) {
    const int row = first + lane.lane % 8;
#pragma unroll
    for (int i = 0; i < E / 32; ++i) {
      Left four;
      load_matrices(four, rows + piece_offset(row, 4 * i + lane.lane / 8, row_bytes<E>));
#pragma unroll
      for (int j = 0; j < 4; ++j)
        q[2 * i + j / 2][j % 2] = factor == 0 ? four[j] : times<T>(four[j], factor);
    }
#pragma unroll
    for (int i = 0; i < E / 16; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i][j] = 0;
#pragma unroll
    for (int j = 0; j < 2; ++j) largest[j] = minus_infinity(), total[j] = 0;
  }

  /// Scores become weights, of which `weights` are the right operand, times `by` of keys g and
  /// g + 8.
  __device__ void weigh(Result& scores, float scale, const float (&by)[2],
                        std::uint32_t (&weights)[2]) {
    float factor[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float now = fmaxf(scores[j], scores[j + 2]);
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2)
        now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, offset));
      now = fmaxf(now, largest[j]);
      const float shift = now == minus_infinity() ? 0 : now * scale;  // -inf - -inf would be NaN
      factor[j] = exp2_fast(fmaf(largest[j], scale, -shift));
      largest[j] = now;
      scores[j] = exp2_fast(fmaf(scores[j], scale, -shift));
      scores[j + 2] = exp2_fast(fmaf(scores[j + 2], scale, -shift));
      total[j] = fmaf(total[j], factor[j], scores[j] + scores[j + 2]);
    }
#pragma unroll
    for (int i = 0; i < E / 16; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i][j] *= factor[j % 2];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      weights[half] =
          transposed(round_pair<T>(by[half] * scores[2 * half], by[half] * scores[2 * half + 1]));
  }
};

/// 16 keys, or 16 numbers of the values of 16 keys, as left operands: from a warp's rows of a tile,
/// numbers of 16 bits, or codes, whose operands are those of spread_codes().
template <class T, int E, bool coded>
class Operands {
  static constexpr int row = width<coded> * E;
  using Rows = Parts<row>;

 public:
  enum class Of { keys, values };

  /// multiply(i, a) with the numbers 16 i to 16 i + 15 of the warp's 16 keys, or, transposed, of
  /// their values.
  template <Of of, class Multiply>
  __device__ void for_each(std::uint32_t tile, const Multiply& multiply) const {
    const auto give = [&](int i, const Left& a) {
      if constexpr (of == Of::keys)
        multiply(i, a);
      else {
        const Left turned{a[0], a[2], a[1], a[3]};
        multiply(i, turned);
      }
    };
#pragma unroll
    for (int i = 0; i < part_count<row>; ++i) {
      Left words;
      if constexpr (of == Of::keys)
        load_matrices(words, rows_.at(tile, warp_, i));
      else
        load_transposed(words, rows_.at(tile, warp_, i));
      if constexpr (coded) {
        // Words of keys 0 to 7 and 8 to 15 for 16 numbers, then for the next 16. The order of codes
        // makes a word's pairs neighbours, transposed those of two keys.
        Left a[2];
#pragma unroll
        for (int j = 0; j < 4; ++j) spread_codes<T>(words[j], a[j / 2][j % 2], a[j / 2][j % 2 + 2]);
        give(2 * i, a[0]), give(2 * i + 1, a[1]);
      } else {
        give(i, words);
      }
    }
  }

 private:
  Rows rows_ = Rows::rows_first(static_cast<int>(threadIdx.x) % 32);
  int warp_ = static_cast<int>(threadIdx.x) / 32;
};

/// Products with codes lack the power of two of spread_codes(). In fp16 scores and weights have it
/// from the scales; in bf16, whose products would be too small for float, the queries have half of
/// it and the results the other half.
template <class T>
constexpr bool halved = !std::is_same_v<T, fp16>;
template <class T>
constexpr float code_factor = halved<T> ? 0x1p60f : 0x1p8f;

}  // namespace tern::ops::cuda::paged
