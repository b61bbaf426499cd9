/// The tiles that the kernels under key spans for Hopper need: found once for all heads, then walked by the
/// warp that copies them.
#pragma once
#include "ops/attention/cuda/blocks_sm90/tasks.hpp"
#include "ops/attention/cuda/sm90_common/fragments.hpp"

namespace tern::ops::cuda::blocks_sm90 {

using sm90::group_threads, sm90::group_warps;

struct Arguments {
  CUtensorMap q, k, v, out, dout, dq, dk, dv;  // (B, T, heads, E), in boxes of 64 x 64
  float* lse;         // (B*H, Tq): natural log-sum-exp of scale q k^T, -inf without keys
  float* statistics;  // statistics_size()
  Seen* seen;         // seen_size()
  int* taken;         // tasks taken after the first of every block; 0 at the start
  Problem problem;
  sm90::InverseRope rope;
};

/// A warp for each word of args.seen; clears the counters, one per pass. This takes longer than the
/// warp that copies has time for in a short task.
template <int passes>
__global__ void __launch_bounds__(group_threads)
    find_tiles(const __grid_constant__ Arguments args) {
  const Problem& p = args.problem;
  const int lane = static_cast<int>(threadIdx.x) % 32, words = seen_words(p);
  const int number = static_cast<int>(blockIdx.x * group_warps + threadIdx.x / 32);
  if (blockIdx.x == 0 && threadIdx.x < passes) args.taken[threadIdx.x] = 0;
  if (number >= static_cast<int>(seen_size(p))) return;
  const int row = number / words, rows = tiles_of(p.extent.queries);
  const int tile = number % words * seen_tiles + lane;
  const Tile seen =
      tile < tiles_of(p.extent.keys) ? tile_of(p, row / rows, row % rows, tile) : Tile::none;
  const unsigned some = __ballot_sync(0xffffffffu, seen != Tile::none);
  const unsigned mixed = __ballot_sync(0xffffffffu, seen == Tile::mixed);
  if (lane == 0) args.seen[number] = {some, mixed};
}

/// The tiles of the other axis that a block meets, by a warp, 32 at a time.
template <Pass pass, int groups>
class Walk {
 public:
  __device__ Walk(const Arguments& args, const Task& task) : args_(args), task_(task) { restart(); }
  __device__ void restart() { base_ = -seen_tiles, left_ = 0; }
  /// The next tile, its step's `last` unset; bits < 0 after the last one.
  __device__ Step next() {
    const Extent& extent = args_.problem.extent;
    const int count = tiles_of(pass == Pass::backward_key ? extent.queries : extent.keys);
    while (left_ == 0) {
      base_ += seen_tiles;
      if (base_ >= count) return {-1};
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        seen_[g] = fetch(task_.block * groups + g, count);
        left_ |= seen_[g].some;
      }
    }
    const int lowest = __ffs(static_cast<int>(left_)) - 1;
    left_ &= left_ - 1;
    int seen = 0;
#pragma unroll
    for (int g = 0; g < groups; ++g) seen |= static_cast<int>(seen_[g].of(lowest)) << 2 * g;
    return Step::make(base_ + lowest, seen, false);
  }

 private:
  /// Of the 32 tiles from base_ on and the block's tile `own`.
  __device__ Seen fetch(int own, int count) const {
    const Problem& p = args_.problem;
    if constexpr (pass != Pass::backward_key) {
      if (own >= tiles_of(p.extent.queries)) return {0, 0};
      return args_.seen[seen_at(p, task_.sequence, own, base_ / seen_tiles)];
    } else {
      const int tile = base_ + static_cast<int>(threadIdx.x) % 32;
      Tile seen = Tile::none;
      if (tile < count && own < tiles_of(p.extent.keys))
        seen = args_.seen[seen_at(p, task_.sequence, tile, own / seen_tiles)].of(own % seen_tiles);
      return {__ballot_sync(0xffffffffu, seen != Tile::none),
              __ballot_sync(0xffffffffu, seen == Tile::mixed)};
    }
  }

  const Arguments& args_;
  const Task& task_;
  int base_;
  unsigned left_;
  Seen seen_[groups] = {};
};

}  // namespace tern::ops::cuda::blocks_sm90
