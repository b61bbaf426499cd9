/// Shared by the two kernels of causal attention backward: shared memory, the warp that copies,
/// the products and results of a warpgroup.
#pragma once
#include "ops/attention/cuda/causal_bwd_sm90/tasks.hpp"
#include "ops/core/cuda/hopper.hpp"
#include "ops/core/cuda/tensor_core.hpp"

namespace tern::ops::cuda::causal_bwd_sm90 {

using hopper::Rows, hopper::Square, hopper::Strip;

constexpr int groups = block_tiles, group_threads = 128, group_warps = 4;
constexpr int threads = (groups + 1) * group_threads;  // the last group copies
// Registers per thread: at the start 65536 / threads, then less for the group that copies.
constexpr int copy_registers = 40, compute_registers = 232;

constexpr float log2_of_e = 1.4426950408889634f;

struct Arguments {
  CUtensorMap q, k, v, out, dout, dq, dk, dv;  // (B, T, heads, E), in boxes of 64 x 64
  const float* lse;                            // (B*H, T): natural log-sum-exp of scale q k^T
  float* statistics;                           // statistics_size()
  int* taken;  // tasks taken after the first of every block; 0 at the start
  Problem problem;
  TurnBack turn;
};

/// Shared memory of a block, in bytes. Tiles of 64 rows are E / 64 squares side by side.
template <Owner owner, int E>
struct Shared {
  static_assert(E == 64 || E == 128);
  static constexpr int tile = tile_rows * E * 2, stages = E == 64 ? 6 : 3;
  /// Of each warpgroup: q, dout, out and dq, or k, v and dk, dv.
  static constexpr int own_tiles = owner == Owner::queries ? 3 : 2;
  /// Whether own tiles stay for the whole task, as registers have no room for them: tasks then take
  /// turns at two places, and results replace the tiles. Else results have a place of their own.
  static constexpr bool own_stay = owner == Owner::keys && E == 128;
  static constexpr int places = own_stay ? 2 : 1;
  static constexpr int result_tiles = own_stay ? 0 : owner == Owner::queries ? 1 : 2;
  /// lse of the block's queries; statistics of a stage's queries.
  static constexpr int lse_bytes = owner == Owner::queries ? block_rows * 4 : 0;
  static constexpr int statistics_bytes = owner == Owner::keys ? 2 * tile_rows * 4 : 0;
  static constexpr int stage_bytes = 2 * tile + statistics_bytes;

  static constexpr int own = stages * 2 * tile, results = own + places * own_tiles * groups * tile;
  static constexpr int statistics = results + result_tiles * groups * tile;
  static constexpr int lse = statistics + stages * statistics_bytes;
  static constexpr int alignment = 1024, bytes = lse + lse_bytes + alignment;
};

/// Position in the ring of stages.
template <int stages>
struct Ring {
  int stage = 0, phase = 0;
  __device__ Ring next() const {
    return stage + 1 < stages ? Ring{stage + 1, phase} : Ring{0, phase ^ 1};
  }
};

struct Barriers {
  std::uint32_t full, empty;          // of the stages, 8 bytes each
  std::uint32_t own_full, own_empty;  // of the places of own tiles, 8 bytes each
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
  __device__ static constexpr int own(int number, int group, int place = 0) {
    return S::own + ((place * S::own_tiles + number) * groups + group) * S::tile;
  }
  __device__ static constexpr int result(int number, int group, int place = 0) {
    return S::own_stay ? own(number, group, place)
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
    hopper::await(barriers.own_full + 8 * (turn % S::places), turn / S::places & 1);
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
      for (int i = 0; i < S::places; ++i) {
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
                             std::uint32_t barrier, hopper::Keep keep) const {
#pragma unroll
    for (int n = 0; n < E / hopper::tile_width; ++n, at.column += hopper::tile_width)
      hopper::copy_tile(to + n * hopper::operand_bytes, from, at, barrier, keep);
  }

  __device__ void copy_own(const Task& t, int place) const {
    const int row = t.block * block_rows;
    const std::uint32_t full = barriers.own_full + 8 * place;
    const CUtensorMap* const from[] = {owner == Owner::queries ? &args.q : &args.k,
                                       owner == Owner::queries ? &args.dout : &args.v, &args.out};
    const int lse_bytes =
        owner == Owner::queries ? min(block_rows, args.problem.tokens - row) * 4 : 0;
    hopper::arrive_expecting(full, S::own_tiles * groups * S::tile + lse_bytes);
#pragma unroll
    for (int i = 0; i < S::own_tiles; ++i)
#pragma unroll
      for (int g = 0; g < groups; ++g)
        copy_tiles(base + own(i, g, place), *from[i], {t.sequence, row + g * tile_rows, t.head, 0},
                   full, hopper::Keep::little);
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
                 hopper::Keep::long_);
      copy_tiles(stage(at) + S::tile, owner == Owner::queries ? args.v : args.dout, place, full,
                 hopper::Keep::long_);
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
      const int place = turn % S::places;
      hopper::await(barriers.own_empty + 8 * place, (turn / S::places & 1) ^ 1);
      const Task t = number < order.tasks ? order.at(number) : Task{0, 0, -1};
      tasks[turn & 1] = t;
      if (t.block < 0) break;
      copy_own(t, place);
      number = static_cast<int>(gridDim.x) + atomicAdd(args.taken, 1);
      if constexpr (owner == Owner::queries)
        copy_stages(t, t.head / group, at);
      else
#pragma unroll 1
        for (int head = t.head * group; head < (t.head + 1) * group; ++head)
          copy_stages(t, head, at);
    }
    hopper::arrive(barriers.own_full + 8 * (turn % S::places));
  }
};

/// Place of a thread's numbers in a Square.
struct Lane {
  int thread = static_cast<int>(threadIdx.x) % group_threads, lane = thread % 32;
  int row = thread / 32 * 16 + lane / 4, pair = lane % 4;  // row: also the one 8 below
};

/// 64 rows of E numbers as a left operand.
template <int E>
struct OwnRows {
  Strip part[E / 16];

  __device__ void load(const Lane& at, std::uint32_t tile) {
    const int row = at.thread / 32 * 16 + at.lane % 16, high = at.lane / 16;
#pragma unroll
    for (int k = 0; k < E / 16; ++k)
      tensor_core::load_matrices(part[k], tile + k / 4 * hopper::operand_bytes +
                                              row * hopper::row_bytes +
                                              ((k % 4 * 2 + high) ^ (row % 8)) * 16);
  }
};

/// The same in shared memory.
struct OwnTile {
  std::uint64_t operand;
};

/// c = rows tile^T, of numbers of type T. Starts the product.
template <class T, int E>
__device__ __forceinline__ void product(Square& c, const OwnRows<E>& rows, std::uint64_t tile) {
  hopper::begin_products();
  hopper::multiply<T, Rows::along_sum, false>(c, rows.part[0], tile);
#pragma unroll
  for (int k = 1; k < E / 16; ++k)
    hopper::multiply<T, Rows::along_sum, true>(
        c, rows.part[k], hopper::advance(tile, k / 4 * hopper::operand_bytes + k % 4 * 32));
}
template <class T, int E>
__device__ __forceinline__ void product(Square& c, const OwnTile& rows, std::uint64_t tile) {
  hopper::begin_products();
  hopper::multiply<T, false>(c, rows.operand, tile);
#pragma unroll
  for (int k = 1; k < E / 16; ++k) {
    const int bytes = k / 4 * hopper::operand_bytes + k % 4 * 32;
    hopper::multiply<T, true>(c, hopper::advance(rows.operand, bytes),
                              hopper::advance(tile, bytes));
  }
}
/// sum += left tile, with the 64 x 64 left operand. Starts the product.
template <class T, int E>
__device__ __forceinline__ void add_product(Square (&sum)[E / 64], Strip (&left)[4],
                                            std::uint64_t tile) {
#pragma unroll
  for (int k = 0; k < 4; ++k) hopper::pin(left[k]);
  hopper::begin_products();
#pragma unroll
  for (int n = 0; n < E / 64; ++n)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      hopper::multiply<T, Rows::along_result, true>(
          sum[n], left[k],
          hopper::advance(tile, n * hopper::operand_bytes + k * hopper::strip_bytes));
}

template <class T>
__device__ __forceinline__ void round(Strip (&to)[4], const Square& c) {
#pragma unroll
  for (int i = 0; i < 16; ++i) to[i / 4][i % 4] = round_pair<T>(c[2 * i], c[2 * i + 1]);
}

/// Turns gradients of rotated heads back. The tile's first row is number `row0` of the sequence's
/// `tokens`.
template <int E>
__device__ __forceinline__ void turn_back(const TurnBack& turn, Lane at, int sequence, int row0,
                                          int tokens, Square (&sum)[E / 64]) {
  if (!turn.table) return;
  asm volatile("" : "+r"(at.row));  // as in put()
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = min(row0 + at.row + 8 * half, tokens - 1);
    const int position = turn.positions
                             ? turn.positions[static_cast<std::int64_t>(sequence) * tokens + row]
                             : turn.first + row;
    const float* cosine = turn.table + static_cast<std::int64_t>(position) * E + 2 * at.pair;
    constexpr int octets = E / 16;  // of columns, in half of a head
#pragma unroll
    for (int o = 0; o < octets; ++o) {
      const float2 c = *reinterpret_cast<const float2*>(cosine + 8 * o);
      const float2 s = *reinterpret_cast<const float2*>(cosine + 8 * o + E / 2);
      const int low = 4 * (o % 8) + 2 * half, high = 4 * ((o + octets) % 8) + 2 * half;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        float &x = sum[o / 8][low + n], &y = sum[(o + octets) / 8][high + n];
        const float cos = n ? c.y : c.x, sin = n ? s.y : s.x, before = x;
        x = before * cos + y * sin;
        y = y * cos - before * sin;
      }
    }
  }
}

/// factor * sum, rounded, to the tile in shared memory.
template <class T, int E>
__device__ __forceinline__ void put(Lane at, const Square (&sum)[E / 64], float factor,
                                    char* tile) {
  asm volatile("" : "+r"(at.row));  // or its addresses take registers of the loop over tiles
#pragma unroll
  for (int n = 0; n < E / 64; ++n)
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int row = at.row + i % 2 * 8, piece = i / 2;
      *reinterpret_cast<std::uint32_t*>(tile + n * hopper::operand_bytes + row * hopper::row_bytes +
                                        (piece ^ (row % 8)) * 16 + at.pair * 4) =
          round_pair<T>(factor * sum[n][2 * i], factor * sum[n][2 * i + 1]);
    }
}

}  // namespace tern::ops::cuda::causal_bwd_sm90
