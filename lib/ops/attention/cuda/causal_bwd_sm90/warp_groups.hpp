/// What a warpgroup does in the two kernels of causal_bwd_sm90/launch.hpp.
#pragma once
#include "ops/attention/cuda/causal_bwd_sm90/block.hpp"

namespace tern::ops::cuda::causal_bwd_sm90 {

/// query_gradient: 64 queries of a head.
template <class T, int E>
struct QueryGroup {
  using Own = Block<Owner::queries, E>;
  using S = typename Own::S;

  const Own& block;
  int group;
  Lane lane = {};
  typename Own::Position at = {};
  OwnRows<E> q = {}, dout = {};
  float lse[2] = {}, delta[2] = {};  // of the thread's two rows; lse times log2(e)
  Acc64x64 sum[E / 64] = {};

  __device__ __forceinline__ void load(const Task& task) {
    const int row0 = task.block * block_rows + group * tile_rows;
    const float* own_lse = reinterpret_cast<const float*>(block.data + S::lse) + group * tile_rows;
    OwnRows<E> out;
    q.load(lane, block.base + Own::own(0, group));
    dout.load(lane, block.base + Own::own(1, group));
    out.load(lane, block.base + Own::own(2, group));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane.row + 8 * half;
      lse[half] = row0 + row < block.args.problem.tokens ? log2_of_e * own_lse[row] : 0;
      float dot = 0;
#pragma unroll
      for (int k = 0; k < E / 16; ++k)
        dot += dot_pair<T>(dout.part[k][half], out.part[k][half]) +
               dot_pair<T>(dout.part[k][half + 2], out.part[k][half + 2]);
      delta[half] = tensor_core::row_sum(dot);
    }
    block.release_own();
  }

  __device__ void keep_statistics(const Task& task, int tile) const {
    const Problem& p = block.args.problem;
    const std::int64_t head = task.sequence * p.heads + task.head;
    float* to = block.args.statistics + (head * tiles_of(p.tokens) + tile) * (2 * tile_rows);
    if (lane.pair == 0)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        to[lane.row + 8 * half] = lse[half];
        to[tile_rows + lane.row + 8 * half] = delta[half];
      }
  }

  /// Scores become weights.
  __device__ __forceinline__ void weights(Acc64x64& s, bool diagonal) const {
    const float scale = block.args.problem.scale * log2_of_e;
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i] = tensor_core::exp2_fast(fmaf(s[i], scale, -lse[i / 2 % 2]));
    if (diagonal)
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (i / 4 * 8 + lane.pair * 2 + i % 2 > lane.row + i / 2 % 2 * 8) s[i] = 0;
  }

  /// One tile of keys, whose scores are in s, at E = 64; `ahead` becomes those of the next tile.
  template <bool last>
  __device__ __forceinline__ void step(Acc64x64& s, Acc64x64& ahead, bool diagonal) {
    const std::uint64_t keys = block.operand(at);
    Acc64x64 dp;
    product<T, E>(dp, dout, hopper::advance(keys, S::tile));
    hopper::commit_products();
    if constexpr (!last) {
      block.await_full(at.next());
      product<T, E>(ahead, q, block.operand(at.next()));
      hopper::commit_products();
    }
    weights(s, diagonal);
    hopper::await_products<last ? 0 : 1>();
    hopper::fence_operand(dp);
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i] *= dp[i] - delta[i / 2 % 2];
    AFragment ds[4];
    round<T>(ds, s);
    add_product<T, E>(sum, ds, keys);
    hopper::end_products();
    if constexpr (!last) hopper::fence_operand(ahead);
    block.release(at);
    at = at.next();
  }

  /// Tiles of keys at E = 128.
  __device__ __forceinline__ void run_in_turn(int tiles) {
#pragma unroll 1
    for (int left = tiles; left > 0; --left, at = at.next()) {
      const std::uint64_t keys = block.operand(at);
      Acc64x64 s, dp;
      block.await_full(at);
      product<T, E>(s, q, keys);
      hopper::commit_products();
      product<T, E>(dp, dout, hopper::advance(keys, S::tile));
      hopper::commit_products();
      hopper::await_products<1>();
      hopper::fence_operand(s);
      weights(s, left == 1);
      hopper::await_products<0>();
      hopper::fence_operand(dp);
#pragma unroll
      for (int i = 0; i < 32; ++i) s[i] *= dp[i] - delta[i / 2 % 2];
      AFragment ds[4];
      round<T>(ds, s);
      add_product<T, E>(sum, ds, keys);
      hopper::end_products();
      block.release(at);
    }
  }

  /// `tiles` tiles of keys, the last one on the diagonal.
  __device__ __forceinline__ void run(int tiles) {
    if constexpr (E > 64) return run_in_turn(tiles);
    Acc64x64 s[2];
    block.await_full(at);
    product<T, E>(s[0], q, block.operand(at));
    hopper::end_products();
    hopper::fence_operand(s[0]);
    for (; tiles > 2; tiles -= 2) {
      step<false>(s[0], s[1], false);
      step<false>(s[1], s[0], false);
    }
    if (tiles == 2) {
      step<false>(s[0], s[1], false);
      step<true>(s[1], s[0], true);
    } else {
      step<true>(s[0], s[1], true);
    }
  }

  __device__ __forceinline__ void write(const Task& task) {
    const Problem& p = block.args.problem;
#pragma unroll
    for (int n = 0; n < E / 64; ++n) hopper::fence_operand(sum[n]);
    if (lane.thread == 0) hopper::await_stores();
    hopper::group_barrier(1 + group);  // the tile is free
    inverse_rope<E>(block.args.rope, lane, task.sequence,
                    task.block * block_rows + group * tile_rows, p.tokens, sum);
    store_accumulator<T, E>(lane, sum, p.scale, block.data + Own::result(0, group));
    hopper::publish_tile();
    hopper::group_barrier(1 + group);
    if (lane.thread == 0) {
#pragma unroll
      for (int n = 0; n < E / 64; ++n)
        hopper::store_tile(
            block.args.dq,
            {task.sequence, task.block * block_rows + group * tile_rows, task.head, 64 * n},
            block.base + Own::result(0, group) + n * hopper::operand_bytes);
      hopper::end_stores();
    }
  }

  __device__ __forceinline__ void compute() {
    const int all = tiles_of(block.args.problem.tokens);
    for (int turn = 0;; ++turn) {
      const Task& task = block.await_own(turn);
      if (task.block < 0) break;
      load(task);
      const int tile = task.block * block_tiles + group;
      int skipped = tiles_for(Owner::queries, task.block, all).last;
      if (tile < all) {
        keep_statistics(task, tile);
#pragma unroll
        for (int n = 0; n < E / 64; ++n)
#pragma unroll
          for (float& x : sum[n]) x = 0;
        run(tile + 1);
        write(task);
        skipped -= tile + 1;
      }
      block.skip(at, skipped);
    }
    if (lane.thread == 0) hopper::await_stores();
  }
};

/// key_gradient: 64 keys of a head. Scores, weights and their gradients are transposed: rows are
/// keys.
template <class T, int E>
struct KeyGroup {
  using Own = Block<Owner::keys, E>;
  using S = typename Own::S;

  const Own& block;
  int group;
  Lane lane = {};
  typename Own::Position at = {};
  std::conditional_t<S::own_stay, OwnTile, OwnRows<E>> k = {}, v = {};
  int buffer = 0;        // of the task's tiles, if they stay
  bool storing = false;  // from the other buffer
  Acc64x64 dk[E / 64] = {}, dv[E / 64] = {};

  __device__ __forceinline__ void load(int turn) {
    if constexpr (S::own_stay) {
      buffer = turn % S::buffers;
      k.operand = hopper::operand(hopper::uniform(block.base + Own::own(0, group, buffer)));
      v.operand = hopper::operand(hopper::uniform(block.base + Own::own(1, group, buffer)));
    } else {
      k.load(lane, block.base + Own::own(0, group));
      v.load(lane, block.base + Own::own(1, group));
      block.release_own();
    }
  }
  /// Gives back the buffer of the task before, from where its results are being stored.
  __device__ void release_stored() {
    if (storing && lane.thread == 0) {
      hopper::await_stores();
      hopper::arrive(block.barriers.own_empty + 8 * (buffer ^ 1));
    }
    storing = false;
  }

  /// lse or delta of the two queries of column pair i.
  __device__ float2 statistic(int which, int i) const {
    const char* from = block.data + S::statistics + at.stage * S::statistics_bytes;
    return reinterpret_cast<const float2*>(from)[which * (tile_rows / 2) + i * 4 + lane.pair];
  }

  __device__ __forceinline__ void weights(Acc64x64& s, bool diagonal) const {
    const float scale = block.args.problem.scale * log2_of_e;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float2 lse = statistic(0, i);
#pragma unroll
      for (int n = 0; n < 4; ++n)
        s[4 * i + n] = tensor_core::exp2_fast(fmaf(s[4 * i + n], scale, n % 2 ? -lse.y : -lse.x));
    }
    if (diagonal)
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (i / 4 * 8 + lane.pair * 2 + i % 2 < lane.row + i / 2 % 2 * 8) s[i] = 0;
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

  template <bool last>
  __device__ __forceinline__ void step(Acc64x64& s, Acc64x64& ahead, bool diagonal) {
    const std::uint64_t queries = block.operand(at), douts = hopper::advance(queries, S::tile);
    Acc64x64 dp;
    product<T, E>(dp, v, douts);
    hopper::commit_products();
    if constexpr (!last) {
      block.await_full(at.next());
      product<T, E>(ahead, k, block.operand(at.next()));
      hopper::commit_products();
    }
    weights(s, diagonal);
    AFragment p[4], ds[4];
    round<T>(p, s);
#pragma unroll
    for (int i = 0; i < 4; ++i) hopper::fence_operand(p[i]);  // while dp is computed
    hopper::await_products<last ? 0 : 1>();
    hopper::fence_operand(dp);
    score_gradient(dp, s);
    round<T>(ds, dp);
    add_product<T, E>(dv, p, douts);
    add_product<T, E>(dk, ds, queries);
    hopper::end_products();
    if constexpr (!last) hopper::fence_operand(ahead);
    block.release(at);
    at = at.next();
  }

  /// Of columns 16 k and on. A strip at a time, so that few statistics are in registers at once.
  __device__ __forceinline__ void round_strip(AFragment& p, AFragment& ds, const Acc64x64& s,
                                              const Acc64x64& dp, int k) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float2 delta = statistic(1, 2 * k + i);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at_pair = 8 * k + 4 * i + 2 * half, to = 2 * i + half;
        p[to] = round_pair<T>(s[at_pair], s[at_pair + 1]);
        ds[to] = round_pair<T>(s[at_pair] * (dp[at_pair] - delta.x),
                               s[at_pair + 1] * (dp[at_pair + 1] - delta.y));
      }
    }
    hopper::fence_operand(p), hopper::fence_operand(ds);
  }

  /// Tiles of queries at E = 128.
  __device__ __forceinline__ void run_in_turn(int tiles) {
#pragma unroll 1
    for (int i = 0; i < tiles; ++i, at = at.next()) {
      const std::uint64_t queries = block.operand(at), douts = hopper::advance(queries, S::tile);
      Acc64x64 s, dp;
      block.await_full(at);
      product<T, E>(s, k, queries);
      hopper::commit_products();
      product<T, E>(dp, v, douts);
      hopper::commit_products();
      if (i == 0) release_stored();
      hopper::await_products<1>();
      hopper::fence_operand(s);
      weights(s, i == 0);
      hopper::await_products<0>();
      hopper::fence_operand(dp);
      AFragment p[4], ds[4];
#pragma unroll
      for (int n = 0; n < 4; ++n) round_strip(p[n], ds[n], s, dp, n);
      add_product<T, E>(dv, p, douts);
      add_product<T, E>(dk, ds, queries);
      hopper::end_products();
      block.release(at);
    }
  }

  /// `tiles` tiles of queries, the first one on the diagonal.
  __device__ __forceinline__ void run(int tiles) {
    if constexpr (E > 64) return run_in_turn(tiles);
    Acc64x64 s[2];
    block.await_full(at);
    product<T, E>(s[0], k, block.operand(at));
    hopper::end_products();
    hopper::fence_operand(s[0]);
    bool diagonal = true;
    for (; tiles > 2; tiles -= 2) {
      step<false>(s[0], s[1], diagonal);
      step<false>(s[1], s[0], false);
      diagonal = false;
    }
    if (tiles == 2) {
      step<false>(s[0], s[1], diagonal);
      step<true>(s[1], s[0], false);
    } else {
      step<true>(s[0], s[1], diagonal);
    }
  }

  __device__ __forceinline__ void write(const Task& task) {
    const Problem& p = block.args.problem;
#pragma unroll
    for (int n = 0; n < E / 64; ++n) hopper::fence_operand(dk[n]), hopper::fence_operand(dv[n]);
    if (lane.thread == 0) hopper::await_stores();
    hopper::group_barrier(1 + group);  // the tiles are free
    inverse_rope<E>(block.args.rope, lane, task.sequence,
                    task.block * block_rows + group * tile_rows, p.tokens, dk);
    store_accumulator<T, E>(lane, dk, p.scale, block.data + Own::result(0, group, buffer));
    store_accumulator<T, E>(lane, dv, 1, block.data + Own::result(1, group, buffer));
    hopper::publish_tile();
    hopper::group_barrier(1 + group);
    if (lane.thread == 0) {
      hopper::TilePlace to{task.sequence, task.block * block_rows + group * tile_rows, task.head,
                           0};
#pragma unroll
      for (int n = 0; n < E / 64; ++n, to.column += 64) {
        const std::uint32_t from = block.base + n * hopper::operand_bytes;
        hopper::store_tile(block.args.dk, to, from + Own::result(0, group, buffer));
        hopper::store_tile(block.args.dv, to, from + Own::result(1, group, buffer));
      }
      hopper::end_stores();
    }
    storing = S::own_stay;
  }

  __device__ __forceinline__ void compute() {
    const Problem& problem = block.args.problem;
    const int all = tiles_of(problem.tokens), heads = problem.heads / problem.kv_heads;
    for (int turn = 0;; ++turn) {
      const Task& task = block.await_own(turn);
      if (task.block < 0) break;
      load(turn);
#pragma unroll
      for (int n = 0; n < E / 64; ++n)
#pragma unroll
        for (int i = 0; i < 32; ++i) dk[n][i] = dv[n][i] = 0;
      const int tile = task.block * block_tiles + group;
#pragma unroll 1
      for (int head = 0; head < heads; ++head) {
        block.skip(at, min(group, all - task.block * block_tiles));
        if (tile < all) run(all - tile);
      }
      if (tile < all) {
        write(task);
      } else if constexpr (S::own_stay) {
        release_stored();
        if (lane.thread == 0) hopper::arrive(block.barriers.own_empty + 8 * buffer);
      }
    }
    if (lane.thread == 0) hopper::await_stores();
  }
};

}  // namespace tern::ops::cuda::causal_bwd_sm90
