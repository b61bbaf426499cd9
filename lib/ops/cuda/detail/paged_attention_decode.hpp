/// Paged attention of single rows, split over the keys (as in Flash-Decoding, Dao et al. 2023). A
/// split of a key head, with the up to 16 query heads that share it and split_keys keys, is the work
/// of a block, whose warps take 16 keys of each tile. Products are transposed, keys or numbers of a
/// value by queries, since tensor cores take 8 queries at a time, but 16 rows. A second kernel adds
/// the parts. Blocks stay for several splits, so that the copies of the next one
/// begin before this one ends, and those of the first before the kernels that rotate and store the
/// pass's own rows. Parts begin at fixed positions, so results are batch-invariant.
#pragma once
#include "ops/cuda/detail/paged_attention_parts.hpp"

namespace tern::ops::cuda::paged {

constexpr int group_rows = 16;  // most queries of a key head

template <class T>
struct Decode {
  Problem<T> problem;
  const Piece* splits;
  int count;       // number of splits
  float* partial;  // (splits, H, E) sums, then (splits, H, 2) largest score and total
  T* out;          // (N, H E)
  bool settled;    // PagedRows

  __device__ float* sums(int split, int head) const {
    return partial + (static_cast<std::int64_t>(split) * problem.heads + head) * size;
  }
  __device__ float* state(int split, int head) const {
    return partial + static_cast<std::int64_t>(count) * problem.heads * size +
           (static_cast<std::int64_t>(split) * problem.heads + head) * 2;
  }
  int size;  // E
};

/// Queries of a stage. As an operand they have 8 or 16 rows; what the others hold does not matter.
TERN_FUNCTION constexpr int query_bytes(int head_size, int group) { return group * head_size * 2; }
/// Numbers of a query in the warps' results; the pad avoids bank conflicts.
TERN_FUNCTION constexpr int result_size(int head_size) { return head_size + 4; }
/// Shared memory of a block: queries of all stages, tiles, then the warps' results.
template <class T, int E, bool coded>
TERN_FUNCTION constexpr int decode_bytes(int group, int stages) {
  return stages * (query_bytes(E, group) + Stages<T, E, coded>::bytes) +
         warps * group * (result_size(E) + 2) * 4;
}

/// Work between two merges: keys [begin, end) of the sequence of a row, for a key head.
struct Split {
  int number, kv, row, position, begin, end;
  const std::int32_t* pages;
};

/// Over the tiles of the splits [next, last), of one key head after the other, so that the short
/// splits at the ends of sequences are spread evenly.
template <class T>
class SplitWalk {
 public:
  __device__ SplitWalk(const Decode<T>& args, int first, int last)
      : args_(args), index_(first), last_(last) {
    enter();
  }
  __device__ bool ended() const { return index_ >= last_; }
  __device__ const Split& split() const { return split_; }
  __device__ int key() const { return key_; }  // first of the tile
  __device__ bool begins() const { return key_ == split_.begin; }
  __device__ bool ends() const { return key_ + tile_rows >= split_.end; }
  __device__ int places() const {
    return places_of(args_.problem, split_.pages, split_.kv, key_, split_.end);
  }
  __device__ void advance() {
    if (!ends()) {
      key_ += tile_rows;
    } else {
      ++index_;
      enter();
    }
  }

 private:
  __device__ void enter() {
    if (ended()) return;
    const Problem<T>& p = args_.problem;
    const int number = index_ % args_.count;
    const Piece piece = args_.splits[number];
    const Segment segment = p.segments[piece.segment];
    key_ = piece.part * PagedRows::split_keys;
    split_ = {number,
              index_ / args_.count,
              segment.row,
              segment.position,
              key_,
              min(key_ + PagedRows::split_keys, segment.position + 1),
              p.tables + segment.table};
  }

  const Decode<T>& args_;
  int index_, last_, key_ = 0;
  Split split_ = {};
};

/// Sums the warps' results, rescaled to their common maximum, times `by`. `shared`: decode_bytes()
/// without the stages, free again after the next barrier.
template <int E, int tiles, class T>
__device__ void merge_warps(const Decode<T>& args, const Split& split, int group,
                            const Queries<T, E> (&queries)[tiles], float by, float* shared) {
  const Lane lane;
  float* sums = shared;                                  // (warps, group, result_size(E))
  float* state = sums + warps * group * result_size(E);  // (warps, group, 2)
#pragma unroll
  for (int n = 0; n < tiles; ++n)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float total = queries[n].total[j];
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2)
        total += __shfl_xor_sync(0xffffffffu, total, offset);
      const int row = n * tile_queries + 2 * lane.pair + j, at = lane.warp * group + row;
      if (row >= group) continue;
      if (lane.row == 0) state[2 * at] = queries[n].largest[j], state[2 * at + 1] = total;
#pragma unroll
      for (int i = 0; i < E / 16; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          sums[at * result_size(E) + i * 16 + half * 8 + lane.row] =
              queries[n].sum[i][2 * half + j];
    }
  __syncthreads();
  const float scale = args.problem.scale * log2_of_e;
  for (int row = lane.warp; row < group; row += warps) {
    float largest = minus_infinity(), total = 0, factor[warps];
    for (int w = 0; w < warps; ++w) largest = fmaxf(largest, state[2 * (w * group + row)]);
    for (int w = 0; w < warps; ++w) {
      const int at = 2 * (w * group + row);
      factor[w] = exp2_fast((state[at] - largest) * scale);
      total = fmaf(factor[w], state[at + 1], total);
    }
    const int head = split.kv * group + row;
    for (int e = lane.lane; e < E; e += 32) {
      float all = 0;
      for (int w = 0; w < warps; ++w)
        all = fmaf(factor[w], sums[(w * group + row) * result_size(E) + e], all);
      args.sums(split.number, head)[e] = by * all;
    }
    if (lane.lane == 0) {
      float* to = args.state(split.number, head);
      to[0] = largest, to[1] = total;
    }
  }
}

/// Starts the copy of the queries of a split.
template <int E, class T>
__device__ void copy_queries(std::uint32_t to, const Problem<T>& p, const Split& split, int group) {
  constexpr int pieces = E / piece_size;
  const T* from = p.qkv + static_cast<std::int64_t>(split.row) * p.width + split.kv * group * E;
  for (int i = static_cast<int>(threadIdx.x); i < group * pieces; i += threads)
    copy_16(to + piece_offset(i / pieces, i % pieces, row_bytes<E>), from + i * piece_size, true);
}

/// tiles: of 8 queries.
template <class T, int E, int in_flight, int tiles, bool coded>
__global__ void __launch_bounds__(threads, 2) decode(const Decode<T> args) {
  extern __shared__ __align__(128) char shared[];
  detail::release_next();
  const Problem<T>& p = args.problem;
  const Lane lane;
  const int group = p.heads / p.kv_heads;
  using Tiles = Stages<T, E, coded>;
  const std::uint32_t rows = shared_address(shared);
  const Tiles staged(rows + in_flight * query_bytes(E, group));
  auto* results =
      reinterpret_cast<float*>(shared + in_flight * (query_bytes(E, group) + Tiles::bytes));

  const std::int64_t all = static_cast<std::int64_t>(args.count) * p.kv_heads;
  const int begin = static_cast<int>(all * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(all * (blockIdx.x + 1) / gridDim.x);
  SplitWalk<T> first_tiles(args, begin, end), ahead(args, begin, end), now(args, begin, end);
  // No kernel in flight writes the tiles before a row's own key.
  bool begun[in_flight - 1] = {};
  if (args.settled)
    for (int stage = 0; stage < in_flight - 1 && !first_tiles.ended(); ++stage) {
      const Split& split = first_tiles.split();
      begun[stage] = first_tiles.key() + tile_rows <= split.position;
      if (begun[stage]) staged.copy(stage, p, first_tiles.places(), first_tiles.key(), split.end);
      first_tiles.advance();
    }
  detail::await_previous();
  int places = ahead.ended() ? 0 : ahead.places();
  const auto copy_next = [&](int stage, bool has_tile) {
    if (!ahead.ended()) {
      const Split& split = ahead.split();
      if (!has_tile) staged.copy(stage, p, places, ahead.key(), split.end);
      if (ahead.begins()) copy_queries<E>(rows + stage * query_bytes(E, group), p, split, group);
      ahead.advance();
      if (!ahead.ended()) places = ahead.places();
    }
    end_copies();
  };
#pragma unroll
  for (int stage = 0; stage < in_flight - 1; ++stage) copy_next(stage, begun[stage]);

  const Operands<T, E, coded> operands;
  using Operand = typename Operands<T, E, coded>::Of;
  constexpr bool shift = coded && halved<T>;
  const std::uint32_t factor = shift ? round_pair<T>(code_factor<T>, code_factor<T>) : 0;
  Queries<T, E> queries[tiles];
  for (int stage = 0; !now.ended(); stage = (stage + 1) % in_flight, now.advance()) {
    wait_for_copies_but<in_flight - 2>();
    __syncthreads();  // this stage has arrived, and the one before it is free
    copy_next((stage + in_flight - 1) % in_flight, false);
    const Split& split = now.split();
    if (now.begins())
#pragma unroll
      for (int n = 0; n < tiles; ++n)
        queries[n].begin(lane, rows + stage * query_bytes(E, group), n * tile_queries, factor);
    const int key = now.key() + lane.warp * chunk_rows;
    if (key < split.end) {  // the same for the whole warp
      Result scores[tiles] = {};
      operands.template for_each<Operand::keys>(staged.keys(stage), [&](int i, const Left& a) {
#pragma unroll
        for (int n = 0; n < tiles; ++n)
          multiply<T>(scores[n], a, queries[n].q[i][0], queries[n].q[i][1]);
      });
      float by[2] = {1, 1};  // of the values of keys g and g + 8
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = lane.row + 8 * half, at = 4 * (lane.warp * chunk_rows + row);
        if (coded)
          by[half] = code_factor<T> * __uint_as_float(load_word(staged.undo(stage, 1) + at));
        const float undo =
            coded ? code_factor<T> * __uint_as_float(load_word(staged.undo(stage, 0) + at)) : 1;
#pragma unroll
        for (int n = 0; n < tiles; ++n)
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            float& score = scores[n][2 * half + j];
            score = key + row < split.end ? undo * score : minus_infinity();
          }
      }
      std::uint32_t weights[tiles][2];
#pragma unroll
      for (int n = 0; n < tiles; ++n)
        queries[n].weigh(scores[n], p.scale * log2_of_e, by, weights[n]);
      operands.template for_each<Operand::values>(staged.values(stage), [&](int i, const Left& a) {
#pragma unroll
        for (int n = 0; n < tiles; ++n)
          multiply<T>(queries[n].sum[i], a, weights[n][0], weights[n][1]);
      });
    }
    if (now.ends())
      merge_warps<E, tiles>(args, split, group, queries, shift ? code_factor<T> : 1, results);
  }
}

/// Adds the parts of a row in order: one warp per head, in the block of the row's first part. Sums
/// of several parts are in flight at once, with the largest scores.
template <class T, int E>
__global__ void __launch_bounds__(threads) combine(const Decode<T> args) {
  constexpr int at_once = 4;
  detail::release_next();
  detail::await_previous();
  const Problem<T>& p = args.problem;
  const Lane lane;
  const int split = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y) * warps + lane.warp;
  const Piece piece = args.splits[split];
  if (piece.part != 0 || head >= p.heads) return;
  const Segment segment = p.segments[piece.segment];
  const int parts = segment.position / PagedRows::split_keys + 1;
  const float scale = p.scale * log2_of_e;
  float sums[at_once][E / 32];
  const auto load = [&](int first) {
#pragma unroll
    for (int i = 0; i < at_once; ++i)
      if (first + i < parts)
#pragma unroll
        for (int e = 0; e < E / 32; ++e)
          sums[i][e] = args.sums(split + first + i, head)[e * 32 + lane.lane];
  };
  load(0);
  float largest = minus_infinity();
  for (int i = lane.lane; i < parts; i += 32)
    largest = fmaxf(largest, args.state(split + i, head)[0]);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
  float total = 0, sum[E / 32] = {};
  for (int first = 0; first < parts; first += at_once) {
    if (first > 0) load(first);
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (first + i >= parts) break;
      const float* state = args.state(split + first + i, head);
      const float factor = exp2_fast((state[0] - largest) * scale);
      total = fmaf(factor, state[1], total);
#pragma unroll
      for (int e = 0; e < E / 32; ++e) sum[e] = fmaf(factor, sums[i][e], sum[e]);
    }
  }
  T* to = args.out + (static_cast<std::int64_t>(segment.row) * p.heads + head) * E;
#pragma unroll
  for (int e = 0; e < E / 32; ++e) to[e * 32 + lane.lane] = T(sum[e] / total);
}

}  // namespace tern::ops::cuda::paged
