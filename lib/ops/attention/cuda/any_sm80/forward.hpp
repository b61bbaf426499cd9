/// Attention forward under any mask (FlashAttention-2, Dao 2023, skipping the mask's empty
/// tiles): one block per (sequence, head, 64 queries).
#pragma once
#include "ops/attention/cuda/any_sm80/fragments.hpp"

namespace tern::ops::cuda::any_sm80 {

template <class T>
struct Forward {
  Problem problem;
  HeadsView<const T> q, k, v;
  HeadsView<T> out;
  float* lse;  // (B*H, Tq)
};

/// Running softmax of rows g and g + 8 of a lane; `largest` in units of the scores, `total` over
/// the lane's own columns.
struct RunningSoftmax {
  float largest[2] = {minus_infinity(), minus_infinity()}, total[2] = {0, 0};

  /// Scores become weights; `factor` returns the scale of older sums.
  __device__ void update(Result (&scores)[2][2], float scale, float (&factor)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = largest[half];
#pragma unroll
      for (int c = 0; c < 2; ++c)
#pragma unroll
        for (int n = 0; n < 2; ++n)
          now = fmaxf(now, fmaxf(scores[c][n][2 * half], scores[c][n][2 * half + 1]));
      now = row_max(now);
      const float shift = now == minus_infinity() ? 0 : now * scale;  // -inf - -inf would be NaN
      factor[half] = exp2_fast(fmaf(largest[half], scale, -shift));
      largest[half] = now;
      float sum = 0;
#pragma unroll
      for (int c = 0; c < 2; ++c)
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            scores[c][n][i] = exp2_fast(fmaf(scores[c][n][i], scale, -shift));
            sum += scores[c][n][i];
          }
      total[half] = fmaf(total[half], factor[half], sum);
    }
  }
};

/// Scores of keys `column`, `column` + 1, + 8 and + 9 become -inf where masked.
__device__ inline void mask(Result (&scores)[2], const Seen (&seen)[2], int column) {
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (!seen[i / 2].holds(column + n * 8 + i % 2)) scores[n][i] = minus_infinity();
}

template <class T, int E>
__global__ void __launch_bounds__(threads, resident_blocks(Pass::forward, row_of<T, E>))
    forward(const Forward<T> args) {
  extern __shared__ __align__(128) char shared[];
  constexpr int row_bytes = row_of<T, E>.bytes();
  const Problem& p = args.problem;
  const Lane lane;
  const int tile = static_cast<int>(blockIdx.x), h = static_cast<int>(blockIdx.y);
  const int b = static_cast<int>(blockIdx.z), bh = b * p.heads + h;
  const int kv = h / (p.heads / p.kv_heads);
  const int q0 = tile * tile_rows, row0 = q0 + lane.warp * chunk_rows;

  const std::uint32_t own = shared_address(shared), staged = own + tile_bytes(row_bytes);
  const auto copy_stage = [&](int stage, int key_tile) {
    const std::uint32_t to = staged + stage * 2 * tile_bytes(row_bytes);
    copy_tile<E>(to, args.k, b, kv, key_tile * tile_rows, p.extent.keys);
    copy_tile<E>(to + tile_bytes(row_bytes), args.v, b, kv, key_tile * tile_rows, p.extent.keys);
  };
  copy_tile<E>(own, args.q, b, h, q0, p.extent.queries);
  const auto meets = [&](int key_tile) {
    return tiles_meet(p.pattern, p.extent, b, tile, key_tile);
  };
  TileWalk walk(tiles_of(p.extent.keys), meets);
  int next = walk.next();
  if (next >= 0) copy_stage(0, next);

  const Seen seen[2] = {Seen(spans_of(p.pattern, p.extent, b, row0 + lane.row)),
                        Seen(spans_of(p.pattern, p.extent, b, row0 + lane.row + 8))};
  const SpanHull hull = hull_of(p.pattern, p.extent, b, row0 / chunk_rows);
  const auto last = Parts<row_bytes>::rows_last(lane.lane);
  const Columns<T, E> columns;
  wait_for_copies();
  __syncthreads();
  KeptRows<row_bytes> q;
  q.take(Parts<row_bytes>::rows_first(lane.lane), own, lane.warp);

  Result sum[E / 8] = {};
  RunningSoftmax softmax;
  const float scale = p.scale * log2_of_e;
  for (int stage = 0; next >= 0; stage ^= 1) {
    const int k0 = next * tile_rows;
    wait_for_copies();
    __syncthreads();  // this stage has arrived, and the other is free
    next = walk.next();
    if (next >= 0) copy_stage(stage ^ 1, next);
    const ChunkStates states(lane.lane, hull, k0 + lane.lane % tile_chunks * chunk_rows);
    const std::uint32_t keys = staged + stage * 2 * tile_bytes(row_bytes),
                        values = keys + tile_bytes(row_bytes);
#pragma unroll 1
    for (unsigned left = states.some; left;) {  // in pairs of chunks
      const int chunk = take_lowest(left);
      const bool two = left != 0;
      const int other = two ? take_lowest(left) : chunk;
      Result scores[2][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[1][0][i] = scores[1][1][i] = minus_infinity();
      product<T>(scores[0], q, last, keys, chunk);
      if (two) product<T>(scores[1], q, last, keys, other);
      const int column = k0 + lane.pair * 2;
      if (states.mixed(chunk)) mask(scores[0], seen, column + chunk * chunk_rows);
      if (states.mixed(other)) mask(scores[1], seen, column + other * chunk_rows);
      float factor[2];
      softmax.update(scores, scale, factor);
#pragma unroll
      for (int n = 0; n < E / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[n][i] *= factor[i / 2];
      Rounded<T> weights;
      round<T>(weights, scores[0]);
      columns.add_product(sum, weights, values, chunk);
      if (two) {
        round<T>(weights, scores[1]);
        columns.add_product(sum, weights, values, other);
      }
    }
  }

  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float total = row_sum(softmax.total[half]);
    const int row = row0 + lane.row + 8 * half;
    factor[half] = total > 0 ? 1 / total : 0;
    if (lane.pair == 0 && row < p.extent.queries)
      args.lse[static_cast<std::int64_t>(bh) * p.extent.queries + row] =
          softmax.largest[half] * p.scale + log2f(total) * ln_2;
  }
  write_rows<E>(lane, sum, factor[0], factor[1], shared, args.out, b, h, row0, p.extent.queries);
}

}  // namespace tern::ops::cuda::any_sm80
