/// Shared by the two kernels of causal attention backward: shared memory, the warp that copies,
/// the products and results of a warpgroup.
#pragma once
#include "ops/attention/cuda/causal_bwd_sm90/tasks.hpp"
#include "ops/attention/cuda/sm90_common/fragments.hpp"
#include "ops/attention/cuda/sm90_common/tensor_maps.hpp"

namespace tern::ops::cuda::causal_bwd_sm90 {

using hopper::Rows, hopper::Acc64x64, hopper::AFragment;
using sm90::add_product, sm90::inverse_rope, sm90::product, sm90::round, sm90::store_accumulator;
using sm90::group_threads, sm90::group_warps, sm90::log2_of_e;
using sm90::InverseRope, sm90::Lane, sm90::OwnRows, sm90::OwnTile, sm90::Ring, sm90::View;

constexpr int groups = block_tiles;
constexpr int threads = (groups + 1) * group_threads;  // the last group copies
// Registers per thread: at the start 65536 / threads, then less for the group that copies.
constexpr int copy_registers = 40, compute_registers = 232;

struct Arguments {
  CUtensorMap q, k, v, out, dout, dq, dk, dv;  // (B, T, heads, E), in boxes of 64 x 64
  const float* lse;                            // (B*H, T): natural log-sum-exp of scale q k^T
  float* statistics;                           // statistics_size()
  int* taken;  // tasks taken after the first of every block; 0 at the start
  Problem problem;
  InverseRope rope;
};

/// Shared memory of a block, in bytes. Tiles of 64 rows are E / 64 squares side by side.
template <Owner owner, int E>
struct Shared {
  static_assert(E == 64 || E == 128);
  static constexpr int tile = tile_rows * E * 2, stages = E == 64 ? 6 : 3;
  /// Of each warpgroup: q, dout, out and dq, or k, v and dk, dv.
  static constexpr int own_tiles = owner == Owner::queries ? 3 : 2;
  /// Whether own tiles stay for the whole task, as registers have no room for them: tasks then take
  /// turns in two buffers, and results replace the tiles. Else results have a buffer of their own.
  static constexpr bool own_stay = owner == Owner::keys && E == 128;
  static constexpr int buffers = own_stay ? 2 : 1;
  static constexpr int result_tiles = own_stay ? 0 : owner == Owner::queries ? 1 : 2;
  /// lse of the block's queries; statistics of a stage's queries.
  static constexpr int lse_bytes = owner == Owner::queries ? block_rows * 4 : 0;
  static constexpr int statistics_bytes = owner == Owner::keys ? 2 * tile_rows * 4 : 0;
  static constexpr int stage_bytes = 2 * tile + statistics_bytes;

  static constexpr int own = stages * 2 * tile, results = own + buffers * own_tiles * groups * tile;
  static constexpr int statistics = results + result_tiles * groups * tile;
  static constexpr int lse = statistics + stages * statistics_bytes;
  static constexpr int alignment = 1024, bytes = lse + lse_bytes + alignment;
};

struct Barriers {
  std::uint32_t full, empty;          // of the stages, 8 bytes each
  std::uint32_t own_full, own_empty;  // of the buffers of own tiles, 8 bytes each
};

template <Owner owner, int E>
struct Block {
  using S = Shared<owner, E>;
  using Position = Ring<S::stages>;

  const Arguments& args;
  Barriers barriers;
  char* data;          // dynamic shared memory
  std::uint32_t base;  // its address
  Task* tasks;         // of this turn and the next, in shared memory; block < 0: no more

  __device__ std::uint32_t stage(const Position& at) const { return base + at.stage * 2 * S::tile; }
  /// The stage's first tile as an operand.
  __device__ std::uint64_t operand(const Position& at) const {
    return hopper::operand(hopper::uniform(stage(at)));
  }
  __device__ static constexpr int own(int number, int group, int buffer = 0) {
    return S::own + ((buffer * S::own_tiles + number) * groups + group) * S::tile;
  }
  __device__ static constexpr int result(int number, int group, int buffer = 0) {
    return S::own_stay ? own(number, group, buffer)
                       : S::results + (number * groups + group) * S::tile;
  }

  __device__ void await_full(const Position& at) const {
    hopper::await(barriers.full + 8 * at.stage, at.phase);
  }
  /// One lane of each warp that has read the stage arrives.
  __device__ void release(const Position& at) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) hopper::arrive(barriers.empty + 8 * at.stage);
  }
  /// Passes over `count` stages.
  __device__ void skip(Position& at, int count) const {
#pragma unroll 1
    for (; count > 0; --count, at = at.next()) {
      await_full(at);
      release(at);
    }
  }
  /// The task of this turn, when its own tiles are there.
  __device__ const Task& await_own(int turn) const {
    hopper::await(barriers.own_full + 8 * (turn % S::buffers), turn / S::buffers & 1);
    return tasks[turn & 1];
  }
  /// By each warp, when it has loaded the own tiles.
  __device__ void release_own() const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) hopper::arrive(barriers.own_empty);
  }

  __device__ void start() const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < S::stages; ++i) {
        hopper::init_barrier(barriers.full + 8 * i, 1);
        hopper::init_barrier(barriers.empty + 8 * i, groups * group_warps);
      }
      for (int i = 0; i < S::buffers; ++i) {
        hopper::init_barrier(barriers.own_full + 8 * i, 1);
        hopper::init_barrier(barriers.own_empty + 8 * i,
                             S::own_stay ? groups : groups * group_warps);
      }
      hopper::publish_barriers();
    }
    __syncthreads();
  }

  // ---- the thread that copies ----

  __device__ void copy_tiles(std::uint32_t to, const CUtensorMap& from, hopper::TilePlace at,
                             std::uint32_t barrier, hopper::CacheHint keep) const {
#pragma unroll
    for (int n = 0; n < E / hopper::tile_width; ++n, at.column += hopper::tile_width)
      hopper::copy_tile(to + n * hopper::operand_bytes, from, at, barrier, keep);
  }

  __device__ void copy_own(const Task& t, int buffer) const {
    const int row = t.block * block_rows;
    const std::uint32_t full = barriers.own_full + 8 * buffer;
    const CUtensorMap* const from[] = {owner == Owner::queries ? &args.q : &args.k,
                                       owner == Owner::queries ? &args.dout : &args.v, &args.out};
    const int lse_bytes =
        owner == Owner::queries ? min(block_rows, args.problem.tokens - row) * 4 : 0;
    hopper::arrive_expecting(full, S::own_tiles * groups * S::tile + lse_bytes);
#pragma unroll
    for (int i = 0; i < S::own_tiles; ++i)
#pragma unroll
      for (int g = 0; g < groups; ++g)
        copy_tiles(base + own(i, g, buffer), *from[i], {t.sequence, row + g * tile_rows, t.head, 0},
                   full, hopper::CacheHint::evict_first);
    if constexpr (owner == Owner::queries)
      hopper::copy_bytes(base + S::lse,
                         args.lse +
                             (t.sequence * args.problem.heads + t.head) *
                                 static_cast<std::int64_t>(args.problem.tokens) +
                             row,
                         lse_bytes, full);
  }

  /// The tiles of the other axis from one of its heads.
  __device__ void copy_stages(const Task& t, int head, Position& at) const {
    const int tiles = tiles_of(args.problem.tokens);
    const TileRange range = tiles_for(owner, t.block, tiles);
#pragma unroll 1
    for (int i = range.first; i < range.last; ++i, at = at.next()) {
      hopper::await(barriers.empty + 8 * at.stage, at.phase ^ 1);
      const std::uint32_t full = barriers.full + 8 * at.stage;
      const hopper::TilePlace place{t.sequence, i * tile_rows, head, 0};
      hopper::arrive_expecting(full, S::stage_bytes);
      copy_tiles(stage(at), owner == Owner::queries ? args.k : args.q, place, full,
                 hopper::CacheHint::evict_last);
      copy_tiles(stage(at) + S::tile, owner == Owner::queries ? args.v : args.dout, place, full,
                 hopper::CacheHint::evict_last);
      if constexpr (owner == Owner::keys)
        hopper::copy_bytes(
            base + S::statistics + at.stage * S::statistics_bytes,
            args.statistics +
                ((t.sequence * args.problem.heads + head) * static_cast<std::int64_t>(tiles) + i) *
                    (2 * tile_rows),
            S::statistics_bytes, full);
    }
  }

  __device__ void copy() const {
    const Problem& p = args.problem;
    const TaskOrder order(p, owner, E);
    const int group = p.heads / p.kv_heads;
    Position at;
    int number = static_cast<int>(blockIdx.x);
    int turn = 0;
    for (;; ++turn) {
      const int buffer = turn % S::buffers;
      hopper::await(barriers.own_empty + 8 * buffer, (turn / S::buffers & 1) ^ 1);
      const Task t = number < order.tasks ? order.at(number) : Task{0, 0, -1};
      tasks[turn & 1] = t;
      if (t.block < 0) break;
      copy_own(t, buffer);
      number = static_cast<int>(gridDim.x) + atomicAdd(args.taken, 1);
      if constexpr (owner == Owner::queries)
        copy_stages(t, t.head / group, at);
      else
#pragma unroll 1
        for (int head = t.head * group; head < (t.head + 1) * group; ++head)
          copy_stages(t, head, at);
    }
    hopper::arrive(barriers.own_full + 8 * (turn % S::buffers));
  }
};

}  // namespace tern::ops::cuda::causal_bwd_sm90
