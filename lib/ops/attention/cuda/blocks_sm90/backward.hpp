/// Attention backward under key spans for Hopper (bf16 or fp16, E = 64, fp32 sums): the two kernels of
/// causal_bwd_sm90/launch.hpp, which says why they are two, over the tiles that the pattern
/// needs. Every result is summed by one warpgroup in the order of the tiles.
///   dv = p^T dout;  ds = p (dout v^T - delta), delta = rowsum(dout out);  dq = scale ds k,
///   dk = scale ds^T q.
#pragma once
#include "ops/attention/cuda/blocks_sm90/block.hpp"

namespace tern::ops::cuda::blocks_sm90 {

constexpr int backward_groups = 2;

/// A warpgroup's part of query_gradient: 64 queries against tiles of keys.
template <class T>
struct QueryGroup {
  using Own = Block<Pass::backward_query, backward_groups>;
  using S = Own::S;

  const Own& block;
  int group;
  Lane lane = {};
  Own::Position at = {}, previous = {};
  Rows q = {}, dout = {};
  KeySpans seen = {};                // of row lane / 2 of the warp
  float lse[2] = {}, delta[2] = {};  // of the thread's two rows; lse times log2(e)
  Sum sum = {};

  __device__ __forceinline__ void load(const Task& task) {
    const int first = group * tile_rows, row0 = task.block * S::block_rows + first;
    const float* own_lse = reinterpret_cast<const float*>(block.data + S::own_lse) + first;
    Rows out;
    q.load(lane, block.base + Own::own(0, group));
    dout.load(lane, block.base + Own::own(1, group));
    out.load(lane, block.base + Own::own(2, group));
    const int i = lane.thread / 2;
    seen = block.spans(S::own_spans, first + i, task.sequence, row0 + i);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane.row + 8 * half;
      lse[half] = row0 + row < block.args.problem.extent.queries ? log2_of_e * own_lse[row] : 0;
      float dot = 0;
#pragma unroll
      for (int k = 0; k < head_size / 16; ++k)
        dot += dot_pair<T>(dout.part[k][half], out.part[k][half]) +
               dot_pair<T>(dout.part[k][half + 2], out.part[k][half + 2]);
      delta[half] = tensor_core::row_sum(dot);
    }
    block.release_own();
#pragma unroll
    for (float& x : sum[0]) x = 0;
  }

  __device__ void keep_statistics(const Task& task) const {
    const Problem& p = block.args.problem;
    const std::int64_t head = task.sequence * p.heads + task.head;
    const int tile = task.block * backward_groups + group;
    float* to = block.args.statistics +
                (head * tiles_of(p.extent.queries) + tile) * (2 * tile_rows) + lane.row;
    if (lane.pair == 0)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        to[8 * half] = lse[half];
        to[tile_rows + 8 * half] = delta[half];
      }
  }

  __device__ __forceinline__ void start_scores(Acc64x64& s) {
    start_product<T>(s, q, block.operand(at));
  }
  __device__ __forceinline__ Step begin(Acc64x64& s, Step now) {
    hopper::fence_operand(sum[0]);
    previous.stage = -1;
    start_scores(s);
    return block.await_next(at, now);
  }

  /// Under way: its scores, and the sum over the tile before.
  template <bool last>
  __device__ __forceinline__ void step(Acc64x64& s, Step now) {
    const float scale = block.args.problem.scale * log2_of_e;
    const std::uint64_t keys = block.operand(at);
    Acc64x64 dp;
    hopper::await_products<0>();
    hopper::fence_operand(s);
    block.release(previous);
    start_product<T>(dp, dout, hopper::advance(keys, S::tile));
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i] = tensor_core::exp2_fast(fmaf(s[i], scale, -lse[i / 2 % 2]));
    if (now.seen_by(group) == Tile::mixed) mask_keys(s, lane, seen, now.tile() * tile_rows, 0);
    hopper::await_products<0>();
    hopper::fence_operand(dp);
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i] *= dp[i] - delta[i / 2 % 2];
    AFragment ds[4];
    round<T>(ds, s);
    start_adding<T>(sum, ds, keys);
    previous = at;
    at = at.next();
    if constexpr (!last) start_scores(s);
  }
  __device__ __forceinline__ Step proceed(Acc64x64& s, Step now, Step next) {
    step<false>(s, now);
    return block.await_next(at, next);
  }
  __device__ __forceinline__ void end(Acc64x64& s, Step now) {
    step<true>(s, now);
    hopper::await_products<0>();
    hopper::fence_operand(sum[0]);
    block.release(previous);
  }

  __device__ __forceinline__ void write(const Task& task) {
    const Problem& p = block.args.problem;
    block.begin_results(lane, group);
    inverse_rope<head_size>(block.args.rope, lane, task.sequence, block.place(task, group).row,
                            p.extent.queries, sum);
    store_accumulator<T, head_size>(lane, sum, p.scale, block.data + Own::result(0, group));
    block.end_results(group);
    if (lane.thread == 0) {
      hopper::store_tile(block.args.dq, block.place(task, group),
                         block.base + Own::result(0, group));
      hopper::end_stores();
    }
  }

  __device__ __forceinline__ void compute() {
    const int tiles = tiles_of(block.args.problem.extent.queries);
    for (int turn = 0;; ++turn) {
      const Task& task = block.await_task(turn);
      if (task.block < 0) break;
      const bool exists = task.block * backward_groups + group < tiles;
      load(task);
      if (exists) keep_statistics(task);
      take_steps(*this, task);
      if (exists) write(task);
    }
    if (lane.thread == 0) hopper::await_stores();
  }
};

/// A warpgroup's part of key_gradient: 64 keys against tiles of queries, of all the heads that
/// share them. Scores, weights and their gradients are transposed: rows are keys.
template <class T>
struct KeyGroup {
  using Own = Block<Pass::backward_key, backward_groups>;
  using S = Own::S;

  const Own& block;
  int group;
  Lane lane = {};
  Own::Position at = {}, previous = {};
  Rows k = {}, v = {};
  int sequence = 0, first_key = 0;  // of the warp
  Sum dk = {}, dv = {};

  __device__ __forceinline__ void load(const Task& task) {
    k.load(lane, block.base + Own::own(0, group));
    v.load(lane, block.base + Own::own(1, group));
    block.release_own();
    sequence = task.sequence;
    first_key = task.block * S::block_rows + group * tile_rows + lane.thread / 32 * 16;
#pragma unroll
    for (int i = 0; i < 32; ++i) dk[0][i] = dv[0][i] = 0;
  }

  /// lse or delta of the two queries of column pair i.
  __device__ float2 statistic(int which, int i) const {
    const char* from = block.data + S::statistics + at.stage * S::statistics_bytes;
    return reinterpret_cast<const float2*>(from)[which * (tile_rows / 2) + i * 4 + lane.pair];
  }

  /// Scores become weights.
  __device__ __forceinline__ void weights(Acc64x64& s, Step now) const {
    const float scale = block.args.problem.scale * log2_of_e;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float2 lse = statistic(0, i);
#pragma unroll
      for (int n = 0; n < 4; ++n)
        s[4 * i + n] = tensor_core::exp2_fast(fmaf(s[4 * i + n], scale, n % 2 ? -lse.y : -lse.x));
    }
    if (now.seen_by(group) == Tile::mixed) {
      const int from = S::spans + at.stage * S::spans_bytes, row = now.tile() * tile_rows;
      unsigned seen = 0;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int i = 2 * lane.lane + n;
        seen |= window(block.spans(from, i, sequence, row + i), first_key, 16) << 16 * n;
      }
      mask_queries(s, lane, seen);
    }
  }

  /// dp becomes ds.
  __device__ __forceinline__ void score_gradient(Acc64x64& dp, const Acc64x64& p) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float2 delta = statistic(1, i);
#pragma unroll
      for (int n = 0; n < 4; ++n)
        dp[4 * i + n] = p[4 * i + n] * (dp[4 * i + n] - (n % 2 ? delta.y : delta.x));
    }
  }

  __device__ __forceinline__ void start_scores(Acc64x64& s) {
    start_product<T>(s, k, block.operand(at));
  }
  __device__ __forceinline__ Step begin(Acc64x64& s, Step now) {
    hopper::fence_operand(dk[0]), hopper::fence_operand(dv[0]);
    previous.stage = -1;
    start_scores(s);
    return block.await_next(at, now);
  }

  /// Under way: its scores, and the sums over the tile before.
  template <bool last>
  __device__ __forceinline__ void step(Acc64x64& s, Step now) {
    const std::uint64_t queries = block.operand(at), douts = hopper::advance(queries, S::tile);
    Acc64x64 dp;
    hopper::await_products<0>();
    hopper::fence_operand(s);
    block.release(previous);
    start_product<T>(dp, v, douts);
    weights(s, now);
    AFragment p[4], ds[4];
    round<T>(p, s);
    hopper::await_products<0>();
    hopper::fence_operand(dp);
    start_adding<T>(dv, p, douts);
    score_gradient(dp, s);
    round<T>(ds, dp);
    start_adding<T>(dk, ds, queries);
    previous = at;
    at = at.next();
    if constexpr (!last) start_scores(s);
  }
  __device__ __forceinline__ Step proceed(Acc64x64& s, Step now, Step next) {
    step<false>(s, now);
    return block.await_next(at, next);
  }
  __device__ __forceinline__ void end(Acc64x64& s, Step now) {
    step<true>(s, now);
    hopper::await_products<0>();
    hopper::fence_operand(dk[0]), hopper::fence_operand(dv[0]);
    block.release(previous);
  }

  __device__ __forceinline__ void write(const Task& task) {
    const Problem& p = block.args.problem;
    block.begin_results(lane, group);
    inverse_rope<head_size>(block.args.rope, lane, task.sequence, block.place(task, group).row,
                            p.extent.keys, dk);
    store_accumulator<T, head_size>(lane, dk, p.scale, block.data + Own::result(0, group));
    store_accumulator<T, head_size>(lane, dv, 1, block.data + Own::result(1, group));
    block.end_results(group);
    if (lane.thread == 0) {
      const hopper::TilePlace to = block.place(task, group);
      hopper::store_tile(block.args.dk, to, block.base + Own::result(0, group));
      hopper::store_tile(block.args.dv, to, block.base + Own::result(1, group));
      hopper::end_stores();
    }
  }

  __device__ __forceinline__ void compute() {
    const int tiles = tiles_of(block.args.problem.extent.keys);
    for (int turn = 0;; ++turn) {
      const Task& task = block.await_task(turn);
      if (task.block < 0) break;
      load(task);
      take_steps(*this, task);
      if (task.block * backward_groups + group < tiles) write(task);
    }
    if (lane.thread == 0) hopper::await_stores();
  }
};

}  // namespace tern::ops::cuda::blocks_sm90
