/// Attention backward under any mask, in two passes that recompute the weights p = exp(scale q
/// k^T - lse): one block per 64 queries for dq (and delta), then one per 64 keys for dk and dv,
/// which sums over the heads that share them. Every result is summed by one warp in a fixed order:
/// no atomics.
///   dv = p^T dout;  ds = p (dout v^T - delta), delta = rowsum(dout out);  dq = scale ds k,
///   dk = scale ds^T q.
#pragma once
#include <type_traits>

#include "ops/attention/cuda/any_sm80/fragments.hpp"

namespace tern::ops::cuda::any_sm80 {

template <class T>
struct Backward {
  Problem problem;
  HeadsView<const T> q, k, v, out, dout;
  const float* lse;  // (B*H, Tq)
  float* delta;      // (B*H, Tq)
  HeadsView<T> dq, dk, dv;
};

/// Dot products of rows g and g + 8.
template <class T, int row_bytes, class X, class Y>
__device__ void row_products(const X& x, const Y& y, float (&result)[2]) {
  const auto dot = [](std::uint32_t a, std::uint32_t b) {
    if constexpr (is_half<T>)
      return dot_pair<T>(a, b);
    else
      return __uint_as_float(a) * __uint_as_float(b);
  };
  result[0] = result[1] = 0;
#pragma unroll
  for (int i = 0; i < part_count<row_bytes>; ++i) {
    Left a, b;
    x.get(i, a);
    y.get(i, b);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      result[half] += dot(a[half], b[half]) + dot(a[half + 2], b[half + 2]);
  }
  for (float& sum : result) sum = row_sum(sum);
}

template <class T, int E>
__global__ void __launch_bounds__(threads, resident_blocks(Pass::backward_query, row_of<T, E>))
    backward_query(const Backward<T> args) {
  extern __shared__ __align__(128) char shared[];
  constexpr int row_bytes = row_of<T, E>.bytes();
  const Problem& p = args.problem;
  const Lane lane;
  const int tile = static_cast<int>(blockIdx.x), h = static_cast<int>(blockIdx.y);
  const int b = static_cast<int>(blockIdx.z), bh = b * p.heads + h;
  const int kv = h / (p.heads / p.kv_heads);
  const int q0 = tile * tile_rows, row0 = q0 + lane.warp * chunk_rows;

  // q goes through the second stage into registers; out is needed only there, for delta.
  const std::uint32_t own = shared_address(shared), staged = own + tile_bytes(row_bytes);
  const std::uint32_t second = staged + 2 * tile_bytes(row_bytes);
  const auto copy_stage = [&](int stage, int key_tile) {
    const std::uint32_t to = staged + stage * 2 * tile_bytes(row_bytes);
    copy_tile<E>(to, args.k, b, kv, key_tile * tile_rows, p.extent.keys);
    copy_tile<E>(to + tile_bytes(row_bytes), args.v, b, kv, key_tile * tile_rows, p.extent.keys);
  };
  copy_tile<E>(second, args.q, b, h, q0, p.extent.queries);
  copy_tile<E>(second + tile_bytes(row_bytes), args.out, b, h, q0, p.extent.queries);
  copy_tile<E>(own, args.dout, b, h, q0, p.extent.queries);
  const auto meets = [&](int key_tile) {
    return tiles_meet(p.pattern, p.extent, b, tile, key_tile);
  };
  TileWalk walk(tiles_of(p.extent.keys), meets);
  int next = walk.next();
  if (next >= 0) copy_stage(0, next);

  const Seen seen[2] = {Seen(spans_of(p.pattern, p.extent, b, row0 + lane.row)),
                        Seen(spans_of(p.pattern, p.extent, b, row0 + lane.row + 8))};
  const SpanHull hull = hull_of(p.pattern, p.extent, b, row0 / chunk_rows);
  const std::int64_t statistics = static_cast<std::int64_t>(bh) * p.extent.queries;
  float lse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = row0 + lane.row + 8 * half;
    lse[half] = row < p.extent.queries ? args.lse[statistics + row] * log2_of_e : 0;
  }
  const auto first = Parts<row_bytes>::rows_first(lane.lane);
  const auto last = Parts<row_bytes>::rows_last(lane.lane);
  const Columns<T, E> columns;
  wait_for_copies();
  __syncthreads();
  using Kept = KeptRows<row_bytes>;
  using Shared = SharedRows<row_bytes>;
  Kept q;
  std::conditional_t<keeps_dout(row_of<T, E>), Kept, Shared> dout;
  Shared out;
  q.take(first, second, lane.warp);
  dout.take(first, own, lane.warp);
  out.take(first, second + tile_bytes(row_bytes), lane.warp);
  float delta[2];
  row_products<T, row_bytes>(dout, out, delta);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = row0 + lane.row + 8 * half;
    if (lane.pair == 0 && row < p.extent.queries) args.delta[statistics + row] = delta[half];
  }

  Result sum[E / 8] = {};
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
    for (unsigned left = states.some; left;) {
      const int c = take_lowest(left);
      Result weights[2], gradient[2];
      product<T>(weights, q, last, keys, c);
      product<T>(gradient, dout, last, values, c);
      const bool mixed = states.mixed(c);
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float weight = exp2_fast(fmaf(weights[n][i], scale, -lse[i / 2]));
          if (mixed && !seen[i / 2].holds(k0 + c * chunk_rows + n * 8 + lane.pair * 2 + i % 2))
            weight = 0;
          gradient[n][i] = weight * (gradient[n][i] - delta[i / 2]);
        }
      Rounded<T> rounded;
      round<T>(rounded, gradient);
      columns.add_product(sum, rounded, keys, c);
    }
  }
  write_rows<E>(lane, sum, p.scale, p.scale, shared, args.dq, b, h, row0, p.extent.queries);
}

/// Data of a stage's 64 queries next to q and dout.
struct Statistics {
  KeySpans seen[tile_rows];
  float lse[tile_rows], delta[tile_rows];
};
static_assert(sizeof(Statistics) == statistics_bytes);

/// Starts the copy of a tile's statistics: thread i of the first 64 copies query i's.
template <class T>
__device__ void copy_statistics(Statistics& to, const Backward<T>& args, int b, int h, int q0) {
  const Problem& p = args.problem;
  const int i = static_cast<int>(threadIdx.x), query = q0 + i;
  if (i >= tile_rows) return;
  const bool valid = query < p.extent.queries;
  const std::int64_t at =
      static_cast<std::int64_t>(b * p.heads + h) * p.extent.queries + (valid ? query : 0);
  copy_4(shared_address(to.lse + i), args.lse + at, valid);
  copy_4(shared_address(to.delta + i), args.delta + at, valid);
  if (p.pattern.kind == Pattern::Kind::spans)
    copy_16(shared_address(to.seen + i),
            p.pattern.spans + b * static_cast<std::int64_t>(p.extent.queries) + (valid ? query : 0),
            valid);
  else
    to.seen[i] = spans_of(p.pattern, p.extent, b, query);
}

template <class T, int E>
__global__ void __launch_bounds__(threads, resident_blocks(Pass::backward_key, row_of<T, E>))
    backward_key(const Backward<T> args) {
  extern __shared__ __align__(128) char shared[];
  constexpr int row_bytes = row_of<T, E>.bytes();
  const Problem& p = args.problem;
  const Lane lane;
  const int group = p.heads / p.kv_heads;
  const int tile = static_cast<int>(blockIdx.x), kv = static_cast<int>(blockIdx.y);
  const int b = static_cast<int>(blockIdx.z);
  const int k0 = tile * tile_rows, row0 = k0 + lane.warp * chunk_rows;

  Statistics* statistics = reinterpret_cast<Statistics*>(shared);
  char* stage_data = shared + stages * sizeof(Statistics);
  const std::uint32_t staged = shared_address(stage_data);
  // k and v go through the second stage into registers, or have their own tiles.
  const std::uint32_t own = staged + (keeps_rows(row_of<T, E>) ? 2 : 4) * tile_bytes(row_bytes);
  const auto copy_stage = [&](int stage, int head, int query_tile) {
    const std::uint32_t to = staged + stage * 2 * tile_bytes(row_bytes);
    const int q0 = query_tile * tile_rows;
    copy_tile<E>(to, args.q, b, head, q0, p.extent.queries);
    copy_tile<E>(to + tile_bytes(row_bytes), args.dout, b, head, q0, p.extent.queries);
    copy_statistics(statistics[stage], args, b, head, q0);
  };
  copy_tile<E>(own, args.k, b, kv, k0, p.extent.keys);
  copy_tile<E>(own + tile_bytes(row_bytes), args.v, b, kv, k0, p.extent.keys);

  const auto meets = [&](int query_tile) {
    return tiles_meet(p.pattern, p.extent, b, query_tile, tile);
  };
  TileWalk walk(tiles_of(p.extent.queries), meets);
  int head = kv * group, next = walk.next();
  const auto advance = [&] {
    next = walk.next();
    if (next < 0 && ++head < (kv + 1) * group) {
      walk.restart();
      next = walk.next();
    }
  };
  // Lane i keeps the hull of the next tile's chunk i.
  const auto next_hull = [&] {
    return hull_of(p.pattern, p.extent, b, next * tile_chunks + lane.lane % tile_chunks);
  };
  SpanHull hull = {};
  if (next >= 0) copy_stage(0, head, next), hull = next_hull();

  const auto first = Parts<row_bytes>::rows_first(lane.lane);
  const auto last = Parts<row_bytes>::rows_last(lane.lane);
  const Columns<T, E> columns;
  wait_for_copies();
  __syncthreads();
  using Rows =
      std::conditional_t<keeps_rows(row_of<T, E>), KeptRows<row_bytes>, SharedRows<row_bytes>>;
  Rows k, v;
  k.take(first, own, lane.warp);
  v.take(first, own + tile_bytes(row_bytes), lane.warp);

  Result dk[E / 8] = {}, dv[E / 8] = {};
  const float scale = p.scale * log2_of_e;
  for (int stage = 0; next >= 0; stage ^= 1) {
    wait_for_copies();
    __syncthreads();  // this stage has arrived, and the other is free
    const ChunkStates states(lane.lane, hull, row0);
    advance();
    if (next >= 0) copy_stage(stage ^ 1, head, next), hull = next_hull();
    const std::uint32_t queries = staged + stage * 2 * tile_bytes(row_bytes);
    const std::uint32_t douts = queries + tile_bytes(row_bytes);
#pragma unroll 1
    for (unsigned left = states.some; left;) {
      const int c = take_lowest(left);
      Result weights[2], gradient[2];
      product<T>(weights, k, last, queries, c);
      product<T>(gradient, v, last, douts, c);
      const bool mixed = states.mixed(c);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int column = c * chunk_rows + n * 8 + lane.pair * 2;
        const float2 lse = *reinterpret_cast<const float2*>(statistics[stage].lse + column);
        const float2 delta = *reinterpret_cast<const float2*>(statistics[stage].delta + column);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          weights[n][i] =
              exp2_fast(fmaf(weights[n][i], scale, -log2_of_e * (i % 2 ? lse.y : lse.x)));
        if (mixed)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const KeySpans seen = load_aligned(statistics[stage].seen + column + i);
            if (!seen.holds(row0 + lane.row)) weights[n][i] = 0;
            if (!seen.holds(row0 + lane.row + 8)) weights[n][i + 2] = 0;
          }
#pragma unroll
        for (int i = 0; i < 4; ++i)
          gradient[n][i] = weights[n][i] * (gradient[n][i] - (i % 2 ? delta.y : delta.x));
      }
      Rounded<T> rounded;
      round<T>(rounded, weights);
      columns.add_product(dv, rounded, douts, c);
      round<T>(rounded, gradient);
      columns.add_product(dk, rounded, queries, c);
    }
  }
  __syncthreads();
  write_rows<E>(lane, dk, p.scale, p.scale, stage_data, args.dk, b, kv, row0, p.extent.keys);
  write_rows<E>(lane, dv, 1, 1, stage_data + tile_bytes(row_bytes), args.dv, b, kv, row0,
                p.extent.keys);
}

}  // namespace tern::ops::cuda::any_sm80
