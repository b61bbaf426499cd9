/// What a warp of paged attention of single rows multiplies: 16 keys of a tile, or numbers of their
/// values, by 8 queries.
#pragma once
#include "ops/cuda/detail/paged_attention_parts.hpp"

namespace tern::ops::cuda::paged {

constexpr int tile_queries = 8;

/// Up to 8 queries of a split, and what a warp has of their results: a lane has numbers g and g + 8 of
/// each 16 of a value, for queries 2t and 2t + 1, and of the weights those of keys g and g + 8.
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
/// numbers of 16 bits, or codes, whose operands are the numbers over 2^spread_power.
template <class T, int E, bool coded>
class Operands {
  using Rows = Parts<width<coded> * E>;

 public:
  /// multiply(i, a) with the numbers 16 i to 16 i + 15 of the warp's 16 keys.
  template <class Multiply>
  __device__ void keys(std::uint32_t tile, const Multiply& multiply) const {
    if constexpr (coded) {
#pragma unroll
      for (int i = 0; i < E / 32; ++i) {
        Left words, a[2];  // 16 numbers of keys 0 to 7, of keys 8 to 15; the next 16
        load_matrices(words, rows_.at(tile, warp_, i));
#pragma unroll
        for (int j = 0; j < 4; ++j) spread_codes<T>(words[j], a[j / 2][j % 2], a[j / 2][j % 2 + 2]);
        multiply(2 * i, a[0]), multiply(2 * i + 1, a[1]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < E / 16; ++i) {
        Left a;
        load_matrices(a, rows_.at(tile, warp_, i));
        multiply(i, a);
      }
    }
  }
  /// multiply(i, a) with the transposed numbers 16 i to 16 i + 15 of the values of the 16 keys.
  template <class Multiply>
  __device__ void values(std::uint32_t tile, const Multiply& multiply) const {
    if constexpr (coded) {
#pragma unroll
      for (int i = 0; i < E / 32; ++i) {
        Left words, a[2];  // as above; the order of codes makes a word's pairs those of two keys
        load_transposed(words, rows_.at(tile, warp_, i));
#pragma unroll
        for (int j = 0; j < 4; ++j)
          spread_codes<T>(words[j], a[j / 2][j % 2 * 2], a[j / 2][j % 2 * 2 + 1]);
        multiply(2 * i, a[0]), multiply(2 * i + 1, a[1]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < E / 16; ++i) {
        Left four;
        load_transposed(four, rows_.at(tile, warp_, i));
        const Left a{four[0], four[2], four[1], four[3]};
        multiply(i, a);
      }
    }
  }

 private:
  Rows rows_ = Rows::rows_first(static_cast<int>(threadIdx.x) % 32);
  int warp_ = static_cast<int>(threadIdx.x) / 32;
};

/// Products with codes lack 2^spread_power. In fp16 scores and weights have it from the scales; in
/// bf16, whose products would be too small for float, the queries have half of it and the results
/// the other half.
template <class T>
constexpr bool halved = !std::is_same_v<T, fp16>;
template <class T>
constexpr float code_factor = halved<T> ? 0x1p60f : 0x1p8f;

}  // namespace tern::ops::cuda::paged
