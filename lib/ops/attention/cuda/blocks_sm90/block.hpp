/// Shared by the three kernels under key spans for Hopper: shared memory, the warp that
/// copies tiles, the walk of a warpgroup over them, the attention mask.
#pragma once
#include "ops/attention/cuda/blocks_sm90/walk.hpp"

namespace tern::ops::cuda::blocks_sm90 {

using hopper::Acc64x64, hopper::AFragment;
using sm90::Lane, sm90::store_accumulator, sm90::round, sm90::inverse_rope, sm90::log2_of_e;

constexpr int head_size = 64;
constexpr float ln_2 = 0.6931471805599453f;
using Rows = sm90::OwnRows<head_size>;
using Sum = Acc64x64[1];

/// c = rows tile^T, of numbers of type T. Starts the product, a group for await_products.
template <class T>
__device__ __forceinline__ void start_product(Acc64x64& c, const Rows& rows, std::uint64_t tile) {
  sm90::product<T, head_size>(c, rows, tile);
  hopper::commit_products();
}
/// sum += left tile, likewise.
template <class T>
__device__ __forceinline__ void start_adding(Sum& sum, AFragment (&left)[4], std::uint64_t tile) {
  sm90::add_product<T, head_size>(sum, left, tile);
  hopper::commit_products();
}

/// One block per multiprocessor: `groups` warpgroups that compute and one that copies.
template <int groups>
constexpr int threads = (groups + 1) * group_threads;
/// Registers per thread. At the start they are divided evenly.
template <int groups>
constexpr int copy_registers = 56;
template <int groups>
constexpr int compute_registers = groups == 2 ? 224 : 152;

/// Shared memory of a block, in bytes.
template <Pass pass, int groups>
struct Shared {
  static_assert(groups == 2 || groups == 3);
  static constexpr int tile = hopper::operand_bytes, block_rows = groups * tile_rows;
  static constexpr int stages = pass == Pass::forward ? 8 : 6;
  static constexpr bool owns_keys = pass == Pass::backward_key;
  /// Of each warpgroup: q and out; q, dout, out and dq; k, v and dk, dv.
  static constexpr int own_tiles = pass == Pass::forward ? 1 : owns_keys ? 2 : 3;
  static constexpr int result_tiles = owns_keys ? 2 : 1;
  /// Of the block's queries, or of a stage's.
  static constexpr int own_spans_bytes = owns_keys ? 0 : block_rows * sizeof(KeySpans);
  static constexpr int own_lse_bytes = pass == Pass::backward_query ? block_rows * 4 : 0;
  static constexpr int spans_bytes = owns_keys ? tile_rows * sizeof(KeySpans) : 0;
  static constexpr int statistics_bytes = owns_keys ? 2 * tile_rows * 4 : 0;

  static constexpr int own = stages * 2 * tile, results = own + own_tiles * groups * tile;
  static constexpr int spans = results + result_tiles * groups * tile;
  static constexpr int statistics = spans + stages * spans_bytes;
  static constexpr int own_spans = statistics + stages * statistics_bytes;
  static constexpr int own_lse = own_spans + own_spans_bytes;
  /// full and empty of every stage, then of the own tiles.
  static constexpr int barriers = own_lse + own_lse_bytes, barrier_count = 2 * stages + 2;
  static constexpr int alignment = 1024, bytes = barriers + 8 * barrier_count + alignment;
};

template <Pass of_pass, int block_groups>
struct Block {
  static constexpr Pass pass = of_pass;
  static constexpr int groups = block_groups;
  using S = Shared<pass, groups>;
  using Position = sm90::Ring<S::stages>;

  const Arguments& args;
  char* data;          // dynamic shared memory
  std::uint32_t base;  // its address
  Task* tasks;         // of this turn and the next, in shared memory
  int* steps;          // bits of each stage's step, in shared memory

  __device__ std::uint32_t full(int stage) const { return base + S::barriers + 8 * stage; }
  __device__ std::uint32_t empty(int stage) const { return full(S::stages + stage); }
  __device__ std::uint32_t own_full() const { return full(2 * S::stages); }
  __device__ std::uint32_t own_empty() const { return full(2 * S::stages + 1); }

  __device__ std::uint32_t stage(const Position& at) const { return base + at.stage * 2 * S::tile; }
  /// The stage's first tile as an operand; the second one is S::tile bytes further.
  __device__ std::uint64_t operand(const Position& at) const {
    return hopper::operand(hopper::uniform(stage(at)));
  }
  __device__ static constexpr int own(int number, int group) {
    return S::own + (number * groups + group) * S::tile;
  }
  __device__ static constexpr int result(int number, int group) {
    return S::results + (number * groups + group) * S::tile;
  }

  __device__ void start() const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < S::stages; ++i) {
        hopper::init_barrier(full(i), 1);
        hopper::init_barrier(empty(i), groups * group_warps);
      }
      hopper::init_barrier(own_full(), 1);
      hopper::init_barrier(own_empty(), groups * group_warps);
      hopper::publish_barriers();
    }
    __syncthreads();
  }

  // ---- a warpgroup that computes ----

  __device__ Step await_step(const Position& at) const {
    hopper::await(full(at.stage), at.phase);
    return {static_cast<int>(hopper::uniform(static_cast<std::uint32_t>(steps[at.stage])))};
  }
  /// The step after the one at `at`, once it is there; one that nobody sees after the last.
  __device__ Step await_next(const Position& at, Step step) const {
    return step.last() ? Step{0} : await_step(at.next());
  }
  /// One lane of each warp that has read the stage arrives. Stage -1: none.
  __device__ void release(const Position& at) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0 && at.stage >= 0) hopper::arrive(empty(at.stage));
  }
  /// The task of this turn, once its own tiles are there.
  __device__ const Task& await_task(int turn) const {
    hopper::await(own_full(), turn & 1);
    return tasks[turn & 1];
  }
  __device__ void release_own() const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) hopper::arrive(own_empty());
  }

  /// Spans of a query whose copy in shared memory is number i of `from`.
  __device__ KeySpans spans(int from, int i, int sequence, int query) const {
    const Problem& p = args.problem;
    if (p.pattern.kind != Pattern::Kind::spans)
      return spans_of(p.pattern, p.extent, sequence, query);
    if (query >= p.extent.queries) return {};
    return any_sm80::load_aligned(reinterpret_cast<const KeySpans*>(data + from) + i);
  }

  /// Around store_accumulator(): the tile of results is free; it is written, and one thread may store it.
  __device__ void begin_results(const Lane& lane, int group) const {
    if (lane.thread == 0) hopper::await_stores();
    hopper::group_barrier(1 + group);
  }
  __device__ void end_results(int group) const {
    hopper::publish_tile();
    hopper::group_barrier(1 + group);
  }
  __device__ hopper::TilePlace place(const Task& t, int group) const {
    return {t.sequence, (t.block * groups + group) * tile_rows, t.head, 0};
  }

  // ---- the warp that copies ----

  /// Of `count` queries of a sequence from `query` on.
  __device__ void copy_spans(int to, int sequence, int query, int count,
                             std::uint32_t barrier) const {
    const Pattern& pattern = args.problem.pattern;
    hopper::copy_bytes(
        base + to, pattern.spans + sequence * static_cast<std::int64_t>(pattern.queries) + query,
        count * static_cast<int>(sizeof(KeySpans)), barrier);
  }

  __device__ void copy_own(const Task& t) const {
    const Problem& p = args.problem;
    const int row = t.block * S::block_rows, rows = min(S::block_rows, p.extent.queries - row);
    const bool with_spans = !S::owns_keys && p.pattern.kind == Pattern::Kind::spans;
    int bytes = S::own_tiles * groups * S::tile;
    if (with_spans) bytes += rows * static_cast<int>(sizeof(KeySpans));
    if constexpr (pass == Pass::backward_query) bytes += rows * 4;
    hopper::arrive_expecting(own_full(), bytes);
    const CUtensorMap* const from[] = {S::owns_keys ? &args.k : &args.q,
                                       S::owns_keys ? &args.v : &args.dout, &args.out};
#pragma unroll
    for (int i = 0; i < S::own_tiles; ++i)
#pragma unroll
      for (int g = 0; g < groups; ++g)
        hopper::copy_tile(base + own(i, g), *from[i], place(t, g), own_full(),
                          hopper::CacheHint::evict_first);
    if (with_spans) copy_spans(S::own_spans, t.sequence, row, rows, own_full());
    if constexpr (pass == Pass::backward_query)
      hopper::copy_bytes(
          base + S::own_lse,
          args.lse + (t.sequence * p.heads + t.head) * static_cast<std::int64_t>(p.extent.queries) +
              row,
          rows * 4, own_full());
  }

  /// The step's tiles of a head of the other axis; with queries their statistics, and the spans if
  /// any warpgroup needs a mask.
  __device__ void copy_stage(const Task& t, int head, Step step, const Position& at) const {
    const Problem& p = args.problem;
    const std::uint32_t barrier = full(at.stage);
    const int row = step.tile() * tile_rows;
    int bytes = 2 * S::tile + S::statistics_bytes, spans = 0;
    if constexpr (S::owns_keys) {
      bool mixed = false;
      for (int g = 0; g < groups; ++g) mixed |= step.seen_by(g) == Tile::mixed;
      if (mixed && p.pattern.kind == Pattern::Kind::spans)
        spans = min(tile_rows, p.extent.queries - row);
      bytes += spans * static_cast<int>(sizeof(KeySpans));
    }
    steps[at.stage] = step.bits;
    hopper::arrive_expecting(barrier, bytes);
    const hopper::TilePlace from{t.sequence, row, head, 0};
    const std::uint32_t to = stage(at);
    hopper::copy_tile(to, S::owns_keys ? args.q : args.k, from, barrier,
                      hopper::CacheHint::evict_last);
    hopper::copy_tile(to + S::tile, S::owns_keys ? args.dout : args.v, from, barrier,
                      hopper::CacheHint::evict_last);
    if constexpr (S::owns_keys) {
      const std::int64_t tile =
          (t.sequence * p.heads + head) * static_cast<std::int64_t>(tiles_of(p.extent.queries)) +
          step.tile();
      hopper::copy_bytes(base + S::statistics + at.stage * S::statistics_bytes,
                         args.statistics + tile * (2 * tile_rows), S::statistics_bytes, barrier);
      if (spans > 0)
        copy_spans(S::spans + at.stage * S::spans_bytes, t.sequence, row, spans, barrier);
    }
  }

  /// All steps of a task, the first of which the walk has found.
  __device__ void copy_steps(const Task& t, Walk<pass, groups>& walk, Step step,
                             Position& at) const {
    const bool leads = threadIdx.x % 32 == 0;
    const int group = args.problem.heads / args.problem.kv_heads;
    const int heads = S::owns_keys ? group : 1,
              first = S::owns_keys ? t.head * group : t.head / group;
#pragma unroll 1
    for (int i = 0; i < heads; ++i) {
      if (i > 0) walk.restart(), step = walk.next();
#pragma unroll 1
      while (step.bits >= 0) {
        const Step next = walk.next();
        if (next.bits < 0 && i + 1 == heads) step.bits |= Step::last_bit;
        hopper::await(empty(at.stage), at.phase ^ 1);
        if (leads) copy_stage(t, first + i, step, at);
        __syncwarp();
        at = at.next();
        step = next;
      }
    }
  }

  __device__ void copy() const {
    const TaskOrder order(args.problem, pass, groups);
    const bool leads = threadIdx.x % 32 == 0;
    Position at;
    int number = static_cast<int>(blockIdx.x);
    for (int turn = 0;; ++turn) {
      number = __shfl_sync(0xffffffffu, number, 0);
      const bool more = number < order.tasks;
      Task t = more ? order.at(number) : Task{0, 0, -1, false};
      Walk<pass, groups> walk(args, t);
      const Step first = more ? walk.next() : Step{-1};
      t.meets = first.bits >= 0;
      hopper::await(own_empty(), (turn & 1) ^ 1);
      if (leads) {
        tasks[turn & 1] = t;
        if (more) {
          copy_own(t);
          number = static_cast<int>(gridDim.x) + atomicAdd(args.taken, 1);
        } else {
          hopper::arrive(own_full());
        }
      }
      __syncwarp();
      if (!more) break;
      copy_steps(t, walk, first, at);
    }
  }
};

/// A warpgroup's way through the steps of a task. Group has `at`, the stage that it takes,
/// begin(s, step) for the first of a run of neighboring stages that it sees, proceed(s, step,
/// next) from one to the next, both of which return the step after, and end(s, step), after which
/// it holds no stage. Only then does it pass over stages that it does not see, or the copies could
/// wait for one that it holds.
template <class Group>
__device__ __forceinline__ void take_steps(Group& g, const Task& task) {
  bool over = !task.meets;
#pragma unroll 1
  while (!over) {
    Step now = g.block.await_step(g.at);
    if (now.seen_by(g.group) == Tile::none) {
      over = now.last();
      g.block.release(g.at);
      g.at = g.at.next();
      continue;
    }
    Acc64x64 s;
    Step next = g.begin(s, now);
#pragma unroll 1
    while (next.seen_by(g.group) != Tile::none) {
      const Step after = g.proceed(s, now, next);
      now = next;
      next = after;
    }
    over = now.last();
    g.end(s, now);
  }
}

/// Scores of a tile of keys from `first_key` on, or their weights, become `value` where masked.
/// `seen`: spans of row lane / 2 of the warp.
__device__ __forceinline__ void mask_keys(Acc64x64& s, const Lane& lane, const KeySpans& seen,
                                          int first_key, float value) {
  const unsigned own = window(seen, first_key + lane.lane % 2 * 32, 32);
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // the thread's two rows, 32 keys each
    const int row = i / 2 * 8, half = i % 2;
    const unsigned bits =
        __shfl_sync(0xffffffffu, own, (lane.lane / 4 + row) * 2 + half) >> (2 * lane.pair);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const int q = n / 2, c = n % 2;
      if (!(bits >> (8 * q + c) & 1)) s[4 * (4 * half + q) + i / 2 * 2 + c] = value;
    }
  }
}

/// As mask_keys, with 0, of transposed weights. `seen`: for queries 2 lane and 2 lane + 1 of the
/// tile 16 bits each, for the warp's 16 keys.
__device__ __forceinline__ void mask_queries(Acc64x64& p, const Lane& lane, unsigned seen) {
#pragma unroll
  for (int q = 0; q < 8; ++q) {
    const unsigned bits = __shfl_sync(0xffffffffu, seen, 4 * q + lane.pair) >> (lane.lane / 4);
#pragma unroll
    for (int n = 0; n < 4; ++n)
      if (!(bits >> (n % 2 * 16 + n / 2 * 8) & 1)) p[4 * q + n] = 0;
  }
}

template <class Group>
__global__ void __launch_bounds__(threads<Group::Own::groups>, 1)
    attention(const __grid_constant__ Arguments args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Own = typename Group::Own;
  using S = typename Own::S;
  extern __shared__ char shared[];
  __shared__ Task tasks[2];
  __shared__ int steps[S::stages];
  const std::uint32_t own = tensor_core::shared_address(shared);
  const std::uint32_t base = (own + S::alignment - 1) / S::alignment * S::alignment;
  const Own block{args, shared + (base - own), base, tasks, steps};
  block.start();
  const int group = static_cast<int>(threadIdx.x) / group_threads;
  if (group == Own::groups) {
    hopper::give_registers<copy_registers<Own::groups>>();
    if (threadIdx.x % group_threads < 32) block.copy();
  } else {
    hopper::take_registers<compute_registers<Own::groups>>();
    Group{block, group}.compute();
  }
#endif
}

}  // namespace tern::ops::cuda::blocks_sm90
