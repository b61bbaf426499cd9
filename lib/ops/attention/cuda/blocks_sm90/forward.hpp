/// Attention forward under key spans for Hopper (bf16 or fp16, E = 64, fp32 sums), after
/// FlashAttention-3 (Shah et al. 2024, sections 3.1 and 3.2), over the tiles that the pattern needs.
///
/// A warpgroup owns 64 queries, in registers. While the tensor cores add the weights of one tile
/// times its values, it turns the scores of the next tile into weights. Sums are rescaled only when
/// a row's largest score has grown by a factor of 2^8 or more: weights stay below that, where
/// no format loses anything.
#pragma once
#include "ops/attention/cuda/blocks_sm90/block.hpp"

namespace tern::ops::cuda::blocks_sm90 {

/// Running softmax of a thread's two rows; `base`, subtracted from the scores, in their units,
/// `total` over the thread's own columns.
struct RunningSoftmax {
  static constexpr float slack = 8;
  float base[2], total[2];

  __device__ void clear() {
#pragma unroll
    for (int half = 0; half < 2; ++half) base[half] = -__int_as_float(0x7f800000), total[half] = 0;
  }
  /// Scores become weights. Whether older sums are to be scaled by `factor`; scale > 0, of base 2.
  __device__ __forceinline__ bool update(Acc64x64& s, float scale, float (&factor)[2]) {
    bool grows = false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top[2] = {s[2 * half], s[2 * half + 1]};
#pragma unroll
      for (int i = 4; i < 32; ++i)
        if (i / 2 % 2 == half) top[i % 2] = fmaxf(top[i % 2], s[i]);
      const float largest = tensor_core::row_max(fmaxf(top[0], top[1]));
      const bool new_base = (largest - base[half]) * scale > slack;  // not: -inf - -inf
      factor[half] = new_base ? tensor_core::exp2_fast((base[half] - largest) * scale) : 1;
      if (new_base) base[half] = largest;
      grows |= new_base;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float shift = base[half] == -__int_as_float(0x7f800000) ? 0 : base[half] * scale;
      float sum[2] = {0, 0};
#pragma unroll
      for (int i = 0; i < 32; ++i)
        if (i / 2 % 2 == half) {
          s[i] = tensor_core::exp2_fast(fmaf(s[i], scale, -shift));
          sum[i % 2] += s[i];
        }
      total[half] = fmaf(total[half], factor[half], sum[0] + sum[1]);
    }
    return grows;
  }
};

template <class T, int groups>
struct ForwardGroup {
  using Own = Block<Pass::forward, groups>;
  using S = typename Own::S;

  const Own& block;
  int group;
  Lane lane = {};
  typename Own::Position at = {};
  Rows q = {};
  KeySpans seen = {};  // of row lane / 2 of the warp
  RunningSoftmax softmax = {};
  AFragment weights[4] = {};
  Sum sum = {};

  __device__ __forceinline__ void load(const Task& task) {
    q.load(lane, block.base + Own::own(0, group));
    const int i = group * tile_rows + lane.thread / 2;  // row of the block
    seen = block.spans(S::own_spans, i, task.sequence, task.block * S::block_rows + i);
    block.release_own();
    softmax.clear();
#pragma unroll
    for (float& x : sum[0]) x = 0;
  }

  /// Scores become weights, and sums fit them after rescale().
  __device__ __forceinline__ bool weigh(Acc64x64& s, Step step, float (&factor)[2]) {
    if (step.seen_by(group) == Tile::mixed)
      mask_keys(s, lane, seen, step.tile() * tile_rows, -__int_as_float(0x7f800000));
    return softmax.update(s, block.args.problem.scale * log2_of_e, factor);
  }
  __device__ __forceinline__ void rescale(bool grows, const float (&factor)[2]) {
    if (__any_sync(0xffffffffu, grows)) {
      hopper::await_products<0>();
      hopper::fence_operand(sum[0]);
#pragma unroll
      for (int i = 0; i < 32; ++i) sum[0][i] *= factor[i / 2 % 2];
    }
  }
  __device__ __forceinline__ void add_values(const typename Own::Position& of) {
    start_adding<T>(sum, weights, hopper::advance(block.operand(of), S::tile));
  }

  __device__ __forceinline__ Step begin(Acc64x64& s, Step now) {
    start_product<T>(s, q, block.operand(at));
    const Step next = block.await_next(at, now);
    hopper::await_products<0>();
    hopper::fence_operand(s);
    float factor[2];
    rescale(weigh(s, now, factor), factor);
    round<T>(weights, s);
    return next;
  }
  /// The tensor cores add this tile's values while the next one's scores become weights.
  __device__ __forceinline__ Step proceed(Acc64x64& s, Step, Step next) {
    const typename Own::Position before = at;
    at = at.next();
    hopper::fence_operand(sum[0]);
    start_product<T>(s, q, block.operand(at));
    add_values(before);
    const Step after = block.await_next(at, next);
    hopper::await_products<1>();
    hopper::fence_operand(s);
    float factor[2];
    const bool grows = weigh(s, next, factor);
    hopper::fence_operand(s);
    rescale(grows, factor);
    hopper::await_products<0>();
    hopper::fence_operand(sum[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i) hopper::fence_operand(weights[i]);
    block.release(before);
    round<T>(weights, s);
    return after;
  }
  __device__ __forceinline__ void end(Acc64x64&, Step) {
    hopper::fence_operand(sum[0]);
    add_values(at);
    hopper::await_products<0>();
    hopper::fence_operand(sum[0]);
    block.release(at);
    at = at.next();
  }

  __device__ __forceinline__ void write(const Task& task) {
    const Problem& p = block.args.problem;
    const std::int64_t head = task.sequence * p.heads + task.head;
    const hopper::TilePlace to = block.place(task, group);
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = tensor_core::row_sum(softmax.total[half]);
      const int row = to.row + lane.row + 8 * half;
      factor[half] = total > 0 ? 1 / total : 0;
      if (lane.pair == 0 && row < p.extent.queries)
        block.args.lse[head * p.extent.queries + row] =
            softmax.base[half] * p.scale + log2f(total) * ln_2;
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) sum[0][i] *= factor[i / 2 % 2];
    block.begin_results(lane, group);
    store_accumulator<T, head_size>(lane, sum, 1, block.data + Own::result(0, group));
    block.end_results(group);
    if (lane.thread == 0) {
      hopper::store_tile(block.args.out, to, block.base + Own::result(0, group));
      hopper::end_stores();
    }
  }

  __device__ __forceinline__ void compute() {
    const int tiles = tiles_of(block.args.problem.extent.queries);
    for (int turn = 0;; ++turn) {
      const Task& task = block.await_task(turn);
      if (task.block < 0) break;
      load(task);
      take_steps(*this, task);
      if (task.block * groups + group < tiles) write(task);
    }
    if (lane.thread == 0) hopper::await_stores();
  }
};

}  // namespace tern::ops::cuda::blocks_sm90
