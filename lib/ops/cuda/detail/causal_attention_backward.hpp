/// Causal attention backward for Hopper (bf16 or fp16, fp32 sums): two kernels that recompute the
/// weights p = exp(scale q k^T - lse), from FlashAttention-2 (Dao 2023, section 2.3.2) with the warp
/// specialisation of FlashAttention-3 (Shah et al. 2024, section 3.1).
///   dv = p^T dout;  ds = p (dout v^T - delta), delta = rowsum(dout out);  dq = scale ds k,
///   dk = scale ds^T q.
///
/// query_gradient: a task is 128 queries of a head, which sums dq over tiles of 64 keys and leaves
/// delta. key_gradient: a task is 128 keys, which sums dk and dv over tiles of 64 queries of all
/// the heads that share them. A warpgroup owns 64 of the rows and sums in a fixed order, in
/// registers, so the results do not depend on which block takes which task.
///
/// Seven products of tiles instead of the five of one kernel, and two exponentials instead of one;
/// but dq needs no sum over blocks, which is either unordered or waits, with its fp32 copy in
/// memory, and ds does not pass through shared memory, whose bandwidth bounds the five products at
/// E = 64. All left operands are in registers, which halves what a product reads there.
///
/// A warpgroup keeps the tensor cores busy while it computes exponentials: with the scores s of
/// tile j at hand it starts dp of j and s of j + 1, and only then turns s into p.
#pragma once
#include "ops/cuda/detail/causal_attention_parts.hpp"

namespace tern::ops::cuda::causal_attention {

constexpr float log2_of_e = 1.4426950408889634f;

/// A warpgroup's part of query_gradient.
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
  Square sum[E / 64] = {};

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
  __device__ __forceinline__ void weights(Square& s, bool diagonal) const {
    const float scale = block.args.problem.scale * log2_of_e;
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i] = tensor_core::exp2_fast(fmaf(s[i], scale, -lse[i / 2 % 2]));
    if (diagonal)
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (i / 4 * 8 + lane.pair * 2 + i % 2 > lane.row + i / 2 % 2 * 8) s[i] = 0;
  }

  /// One tile of keys, whose scores are in s; `ahead` becomes those of the next tile.
  template <bool last>
  __device__ __forceinline__ void step(Square& s, Square& ahead, bool diagonal) {
    const std::uint64_t keys = block.operand(at);
    Square dp;
    product<T, E>(dp, dout, hopper::advance(keys, S::tile));
    hopper::commit_products();
    if constexpr (!last) {
      block.await_full(at.next());
      product<T, E>(ahead, q, block.operand(at.next()));
      hopper::commit_products();
    }
    weights(s, diagonal);
    hopper::await_products<last ? 0 : 1>();
    hopper::pin(dp);
#pragma unroll
    for (int i = 0; i < 32; ++i) s[i] *= dp[i] - delta[i / 2 % 2];
    Strip ds[4];
    round<T>(ds, s);
    add_product<T, E>(sum, ds, keys);
    hopper::end_products();
    if constexpr (!last) hopper::pin(ahead);
    block.release(at);
    at = at.next();
  }

  /// `tiles` tiles of keys, the last one on the diagonal.
  __device__ __forceinline__ void run(int tiles) {
    Square s[2];
    block.await_full(at);
    product<T, E>(s[0], q, block.operand(at));
    hopper::end_products();
    hopper::pin(s[0]);
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
    for (int n = 0; n < E / 64; ++n) hopper::pin(sum[n]);
    if (lane.thread == 0) hopper::await_stores();
    hopper::group_barrier(1 + group);  // the tile is free
    put<T, E>(lane, sum, p.scale, block.data + Own::result(0, group));
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
      hopper::await(block.barriers.own_full, turn & 1);
      const Task& task = block.tasks[turn & 1];
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

/// A warpgroup's part of key_gradient. Scores, weights and their gradients are transposed: rows are
/// keys.
template <class T, int E>
struct KeyGroup {
  using Own = Block<Owner::keys, E>;
  using S = typename Own::S;

  const Own& block;
  int group;
  Lane lane = {};
  typename Own::Position at = {};
  OwnRows<E> k = {}, v = {};
  Square dk[E / 64] = {}, dv[E / 64] = {};

  /// lse or delta of the two queries of column pair i.
  __device__ float2 statistic(int which, int i) const {
    const char* from = block.data + S::statistics + at.stage * S::statistics_bytes;
    return reinterpret_cast<const float2*>(from)[which * (tile_rows / 2) + i * 4 + lane.pair];
  }

  __device__ __forceinline__ void weights(Square& s, bool diagonal) const {
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
  __device__ __forceinline__ void score_gradient(Square& dp, const Square& p) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float2 delta = statistic(1, i);
#pragma unroll
      for (int n = 0; n < 4; ++n)
        dp[4 * i + n] = p[4 * i + n] * (dp[4 * i + n] - (n % 2 ? delta.y : delta.x));
    }
  }

  template <bool last>
  __device__ __forceinline__ void step(Square& s, Square& ahead, bool diagonal) {
    const std::uint64_t queries = block.operand(at), douts = hopper::advance(queries, S::tile);
    Square dp;
    product<T, E>(dp, v, douts);
    hopper::commit_products();
    if constexpr (!last) {
      block.await_full(at.next());
      product<T, E>(ahead, k, block.operand(at.next()));
      hopper::commit_products();
    }
    weights(s, diagonal);
    Strip p[4], ds[4];
    round<T>(p, s);
#pragma unroll
    for (int i = 0; i < 4; ++i) hopper::pin(p[i]);  // while dp is computed
    hopper::await_products<last ? 0 : 1>();
    hopper::pin(dp);
    score_gradient(dp, s);
    round<T>(ds, dp);
    add_product<T, E>(dv, p, douts);
    add_product<T, E>(dk, ds, queries);
    hopper::end_products();
    if constexpr (!last) hopper::pin(ahead);
    block.release(at);
    at = at.next();
  }

  /// `tiles` tiles of queries, the first one on the diagonal.
  __device__ __forceinline__ void run(int tiles) {
    Square s[2];
    block.await_full(at);
    product<T, E>(s[0], k, block.operand(at));
    hopper::end_products();
    hopper::pin(s[0]);
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
    for (int n = 0; n < E / 64; ++n) hopper::pin(dk[n]), hopper::pin(dv[n]);
    if (lane.thread == 0) hopper::await_stores();
    hopper::group_barrier(1 + group);  // the tiles are free
    put<T, E>(lane, dk, p.scale, block.data + Own::result(0, group));
    put<T, E>(lane, dv, 1, block.data + Own::result(1, group));
    hopper::publish_tile();
    hopper::group_barrier(1 + group);
    if (lane.thread == 0) {
      hopper::TilePlace to{task.sequence, task.block * block_rows + group * tile_rows, task.head,
                           0};
#pragma unroll
      for (int n = 0; n < E / 64; ++n, to.column += 64) {
        const std::uint32_t from = block.base + n * hopper::operand_bytes;
        hopper::store_tile(block.args.dk, to, from + Own::result(0, group));
        hopper::store_tile(block.args.dv, to, from + Own::result(1, group));
      }
      hopper::end_stores();
    }
  }

  __device__ __forceinline__ void compute() {
    const Problem& problem = block.args.problem;
    const int all = tiles_of(problem.tokens), heads = problem.heads / problem.kv_heads;
    for (int turn = 0;; ++turn) {
      hopper::await(block.barriers.own_full, turn & 1);
      const Task& task = block.tasks[turn & 1];
      if (task.block < 0) break;
      k.load(lane, block.base + Own::own(0, group));
      v.load(lane, block.base + Own::own(1, group));
      block.release_own();
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
      if (tile < all) write(task);
    }
    if (lane.thread == 0) hopper::await_stores();
  }
};

template <Owner owner, int E, class Group>
__device__ __forceinline__ void run_block(const Arguments& args) {
  using S = Shared<owner, E>;
  extern __shared__ char shared[];
  __shared__ __align__(8) std::uint64_t barriers[2 * S::stages + 2];
  __shared__ Task tasks[2];
  const std::uint32_t own = tensor_core::shared_address(shared);
  const std::uint32_t base = (own + S::alignment - 1) / S::alignment * S::alignment;
  const std::uint32_t full = tensor_core::shared_address(barriers), empty = full + 8 * S::stages;
  const Block<owner, E> block{args,
                              {full, empty, empty + 8 * S::stages, empty + 8 * S::stages + 8},
                              shared + (base - own),
                              base,
                              tasks};
  block.start();
  const int group = static_cast<int>(threadIdx.x) / group_threads;
  if (group == groups) {
    hopper::give_registers<copy_registers>();
    if (threadIdx.x % group_threads == 0) block.copy();
  } else {
    hopper::take_registers<compute_registers>();
    Group{block, group}.compute();
  }
}

// One block per multiprocessor.
template <class T, int E>
__global__ void __launch_bounds__(threads, 1)
    query_gradient(const __grid_constant__ Arguments args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  run_block<Owner::queries, E, QueryGroup<T, E>>(args);
#endif
}
template <class T, int E>
__global__ void __launch_bounds__(threads, 1) key_gradient(const __grid_constant__ Arguments args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  run_block<Owner::keys, E, KeyGroup<T, E>>(args);
#endif
}

}  // namespace tern::ops::cuda::causal_attention
