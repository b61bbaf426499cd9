/// Paged attention of single rows, split over the keys (as in Flash-Decoding, Dao et al. 2023): a
/// block has up to 16 query heads that share a key head, as the rows of one tensor-core operand,
/// and split_keys keys; its warps take 16 keys of each tile. A second kernel adds the parts. Parts
/// begin at fixed positions, so results are batch-invariant.
#pragma once
#include "ops/cuda/detail/paged_attention_parts.hpp"

namespace tern::ops::cuda::paged {

constexpr int group_rows = 16;

struct Decode {
  Problem problem;
  const Piece* splits;
  int count;       // number of splits
  float* partial;  // (splits, H, E) sums, then (splits, H, 2) largest score and total
  bf16* out;       // (N, H E)

  __device__ float* sums(int split, int head) const {
    return partial + (static_cast<std::int64_t>(split) * problem.heads + head) * size;
  }
  __device__ float* state(int split, int head) const {
    return partial + static_cast<std::int64_t>(count) * problem.heads * size +
           (static_cast<std::int64_t>(split) * problem.heads + head) * 2;
  }
  int size;  // E
};

TERN_FUNCTION constexpr int decode_bytes(int head_size) {
  return stages * 2 * tile_bytes(head_size) + group_rows * head_size * 2;
}

/// Sums the warps' results, rescaled to their common maximum.
template <int E>
__device__ void merge_warps(const Decode& args, int split, int kv, int group,
                            const Result (&sum)[E / 8], const RunningSoftmax& softmax,
                            char* shared) {
  const Lane lane;
  auto* sums = reinterpret_cast<float*>(shared);  // (warps, 16, E)
  float* state = sums + warps * group_rows * E;   // (warps, 16, 2)
  __syncthreads();                                // the tiles are free
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int at = lane.warp * group_rows + lane.row + 8 * half;
    const float total = row_sum(softmax.total[half]);
    if (lane.pair == 0) state[2 * at] = softmax.largest[half], state[2 * at + 1] = total;
#pragma unroll
    for (int n = 0; n < E / 8; ++n)
      *reinterpret_cast<float2*>(sums + at * E + n * 8 + lane.pair * 2) =
          make_float2(sum[n][2 * half], sum[n][2 * half + 1]);
  }
  __syncthreads();
  const float scale = args.problem.scale * log2_of_e;
  for (int row = lane.warp; row < group; row += warps) {
    float largest = minus_infinity(), total = 0, factor[warps];
    for (int w = 0; w < warps; ++w) largest = fmaxf(largest, state[2 * (w * group_rows + row)]);
    for (int w = 0; w < warps; ++w) {
      const int at = 2 * (w * group_rows + row);
      factor[w] = exp2_fast((state[at] - largest) * scale);
      total = fmaf(factor[w], state[at + 1], total);
    }
    const int head = kv * group + row;
    for (int e = lane.lane; e < E; e += 32) {
      float all = 0;
      for (int w = 0; w < warps; ++w)
        all = fmaf(factor[w], sums[(w * group_rows + row) * E + e], all);
      args.sums(split, head)[e] = all;
    }
    if (lane.lane == 0) args.state(split, head)[0] = largest, args.state(split, head)[1] = total;
  }
}

// blockIdx.x: the split, blockIdx.y: the key head.
template <int E>
__global__ void __launch_bounds__(threads, 3) decode(const Decode args) {
  extern __shared__ __align__(128) char shared[];
  detail::release_next();
  detail::await_previous();
  const Problem& p = args.problem;
  const Lane lane;
  const Piece piece = args.splits[blockIdx.x];
  const Segment segment = p.segments[piece.segment];
  const int kv = static_cast<int>(blockIdx.y), group = p.heads / p.kv_heads;
  const std::int32_t* pages = p.tables + segment.table;
  const int begin = piece.part * PagedRows::split_keys;
  const int end = min(begin + PagedRows::split_keys, segment.position + 1);

  const Stages<E> staged{shared_address(shared)};
  const std::uint32_t own = staged.first + stages * 2 * tile_bytes(E);
  constexpr int pieces = E / piece_size;
  for (int i = static_cast<int>(threadIdx.x); i < group_rows * pieces; i += threads) {
    const int row = i / pieces, part = i % pieces;
    const bool valid = row < group;
    const bf16* query = p.qkv + static_cast<std::int64_t>(segment.row) * p.width +
                        (kv * group + (valid ? row : 0)) * E + part * piece_size;
    copy_16(own + piece_offset(row, part, E), query, valid);
  }
  staged.copy(0, p, pages, kv, begin, end);
  const Parts<E> first = Parts<E>::rows_first(lane.lane), last = Parts<E>::rows_last(lane.lane);
  KeptRows<E> q;
  Result sum[E / 8] = {};
  RunningSoftmax softmax;
  int stage = 0;
  for (int k0 = begin; k0 < end; k0 += tile_rows, stage ^= 1) {
    wait_for_copies();
    __syncthreads();  // this stage has arrived, and the other is free
    if (k0 == begin) q.take(first, own, 0);
    if (k0 + tile_rows < end) staged.copy(stage ^ 1, p, pages, kv, k0 + tile_rows, end);
    const int key = k0 + lane.warp * chunk_rows;
    if (key >= end) continue;  // the same for the whole warp
    Result scores[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[1][0][i] = scores[1][1][i] = minus_infinity();
    product<E>(scores[0], q, last, staged.keys(stage), lane.warp);
    if (key + chunk_rows > end) mask_from(scores[0], key + lane.pair * 2, end, end);
    float factor[2];
    softmax.update(scores, p.scale * log2_of_e, factor);
    scale_rows<E>(sum, factor);
    Left weights;
    round_results(weights, scores[0]);
    add_product<E>(sum, weights, first, staged.values(stage), lane.warp);
  }
  merge_warps<E>(args, static_cast<int>(blockIdx.x), kv, group, sum, softmax, shared);
}

/// Adds the parts of a row in order: one warp per head, in the block of the row's first part.
template <int E>
__global__ void __launch_bounds__(threads) combine(const Decode args) {
  detail::release_next();
  detail::await_previous();
  const Problem& p = args.problem;
  const Lane lane;
  const int split = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y) * warps + lane.warp;
  const Piece piece = args.splits[split];
  if (piece.part != 0 || head >= p.heads) return;
  const Segment segment = p.segments[piece.segment];
  const int parts = segment.position / PagedRows::split_keys + 1;
  const float scale = p.scale * log2_of_e;
  float largest = minus_infinity();
  for (int i = 0; i < parts; ++i) largest = fmaxf(largest, args.state(split + i, head)[0]);
  float total = 0, sum[E / 32] = {};
  for (int i = 0; i < parts; ++i) {
    const float* state = args.state(split + i, head);
    const float factor = exp2_fast((state[0] - largest) * scale);
    total = fmaf(factor, state[1], total);
#pragma unroll
    for (int e = 0; e < E / 32; ++e)
      sum[e] = fmaf(factor, args.sums(split + i, head)[e * 32 + lane.lane], sum[e]);
  }
  bf16* to = args.out + (static_cast<std::int64_t>(segment.row) * p.heads + head) * E;
#pragma unroll
  for (int e = 0; e < E / 32; ++e) to[e * 32 + lane.lane] = bf16(sum[e] / total);
}

}  // namespace tern::ops::cuda::paged
