/// Paged attention of single rows, split over the keys (as in Flash-Decoding, Dao et al. 2023). A
/// split of a key head, with the up to 16 query heads that share it and split_keys keys, is the work
/// of a block, whose warps take chunks of 16 keys. Products are transposed, keys or numbers of a
/// value by queries, since tensor cores take 8 queries at a time, but 16 rows. A second kernel adds
/// the parts. Blocks stay for several splits, so that the copies of the next one begin before this
/// one ends, and those of the first before the kernels that rotate and store the pass's own rows.
/// Parts begin at fixed positions, so results are batch-invariant.
#pragma once
#include "ops/decode/cuda/detail/paged_attention_parts.hpp"
#include "ops/elementwise/cuda/code_rows.hpp"

namespace tern::ops::cuda::paged {

constexpr int group_rows = 16;  // most queries of a key head
constexpr int tile_queries = 8;

template <class T>
struct Decode {
  Problem<T> problem;
  const Split* splits;
  const std::int32_t* first_splits;  // (rows + 1)
  int rows;
  int most;        // splits in `partial`
  float* partial;  // (splits, H, E) sums, then (splits, H, 2) largest score and total
  T* out;          // (N, H E)
  bool settled;    // PagedRows
  int size;        // E

  __device__ int count() const { return first_splits[rows]; }  // of splits
  __device__ float* sums(int split, int head) const {
    return partial + (static_cast<std::int64_t>(split) * problem.heads + head) * size;
  }
  __device__ float* state(int split, int head) const {
    return partial + static_cast<std::int64_t>(most) * problem.heads * size +
           (static_cast<std::int64_t>(split) * problem.heads + head) * 2;
  }
};

/// Products with codes lack the power of two of spread_codes(). In fp16 scores and weights have it
/// from the scales; in bf16, whose products would be too small for float, the queries have half of
/// it and the results the other half.
template <class T>
constexpr bool halved = !std::is_same_v<T, fp16>;
template <class T>
constexpr float code_factor = halved<T> ? 0x1p60f : 0x1p8f;

/// Numbers of a query in the warps' results; the pad avoids bank conflicts.
TERN_FUNCTION constexpr int result_size(int head_size) { return head_size + 4; }
/// Shared memory for the warps' results for up to `rows` queries.
TERN_FUNCTION constexpr int result_bytes(int head_size, int rows) {
  return warps * rows * (result_size(head_size) + 2) * 4;
}
/// For up to `rows` queries of a key head. Three blocks per multiprocessor hide more of each other's
/// waits than two; more than 8 queries need the registers. Each warp has at least two slots, better
/// three, of as many chunks as then fit in shared memory.
template <class T, int E, int rows, bool coded>
struct DecodeShape {
  static constexpr int resident = rows > tile_queries ? 2 : 3;
  static constexpr int tiles = rows > tile_queries ? 2 : 1;  // of queries
  static constexpr int room = ((228 << 10) / resident - (1 << 10) - result_bytes(E, rows)) / warps;
  template <int batch>
  static constexpr int fit = room / ChunkRing<T, E, batch, 1, coded>::slot_bytes;
  static constexpr int batch = fit<4> >= 3 ? 4 : fit<2> >= 3 ? 2 : 1;
  static constexpr int slots = fit<batch> < 6 ? fit<batch> : 6;
  using Ring = ChunkRing<T, E, batch, slots, coded>;
  static constexpr int bytes = warps * Ring::bytes + result_bytes(E, rows);
};

/// 16 keys, or 16 numbers of the values of 16 keys, as left operands: from a chunk of numbers of 16
/// bits, or of codes, whose operands are those of spread_codes().
template <class T, int E, bool coded>
class Operands {
  static constexpr int row = width<coded> * E;
  using Rows = Parts<row>;

 public:
  enum class Of { keys, values };

  /// multiply(i, a) with the numbers 16 i to 16 i + 15 of the keys, or, transposed, of their values.
  template <Of of, class Multiply>
  __device__ void for_each(std::uint32_t chunk, const Multiply& multiply) const {
    const auto give = [&](int i, const Left& a) {
      if constexpr (of == Of::keys)
        multiply(i, a);
      else {
        const Left turned{a[0], a[2], a[1], a[3]};
        multiply(i, turned);
      }
    };
#pragma unroll
    for (int i = 0; i < part_count<row>; ++i) {
      Left words;
      if constexpr (of == Of::keys)
        load_matrices(words, rows_.at(chunk, 0, i));
      else
        load_transposed(words, rows_.at(chunk, 0, i));
      if constexpr (coded) {
        // Words of keys 0 to 7 and 8 to 15 for 16 numbers, then for the next 16. The order of codes
        // makes a word's pairs neighbors, transposed those of two keys.
        Left a[2];
#pragma unroll
        for (int j = 0; j < 4; ++j) spread_codes<T>(words[j], a[j / 2][j % 2], a[j / 2][j % 2 + 2]);
        give(2 * i, a[0]), give(2 * i + 1, a[1]);
      } else {
        give(i, words);
      }
    }
  }

 private:
  Rows rows_ = Rows::rows_first(static_cast<int>(threadIdx.x) % 32);
};

/// Up to 8 queries of a split, and what a warp has of their results: a lane has numbers g and g + 8
/// of each 16 of a value, for queries 2t and 2t + 1, and of a chunk's weights those of keys g and
/// g + 8.
template <class T, int E>
struct Queries {
  std::uint32_t q[E / 16][2];  // as a right operand
  Result sum[E / 16];
  Result scores[split_chunks];  // then weights
  float largest[2], total[2];   // total: of the lane's keys

  /// Starts to read the queries of a key head from `first` on.
  __device__ void load(const Lane& lane, const Problem<T>& p, const Work& work, int first) {
    const int group = p.heads / p.kv_heads, row = first + lane.row;
    const T* from = p.qkv + static_cast<std::int64_t>(work.split.row) * p.width +
                    (work.kv * group + min(row, group - 1)) * E;
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(from) + lane.pair;
#pragma unroll
    for (int i = 0; i < E / 16; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) q[i][j] = pairs[8 * i + 4 * j];
  }
  /// Times `factor`, a pair, unless 0.
  __device__ void begin(std::uint32_t factor) {
#pragma unroll
    for (int i = 0; i < E / 16; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j)
        if (factor != 0) q[i][j] = times<T>(q[i][j], factor);
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i][j] = 0;
    }
#pragma unroll
    for (Result& of_chunk : scores)
#pragma unroll
      for (float& score : of_chunk) score = minus_infinity();
  }

  /// Scores become weights.
  __device__ void softmax(float scale) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float now = minus_infinity();
#pragma unroll
      for (const Result& of_chunk : scores) now = fmaxf(now, fmaxf(of_chunk[j], of_chunk[j + 2]));
#pragma unroll
      for (int offset = 4; offset < 32; offset *= 2)
        now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, offset));
      const float shift = now == minus_infinity() ? 0 : now * scale;  // -inf - -inf would be NaN
      largest[j] = now, total[j] = 0;
#pragma unroll
      for (Result& of_chunk : scores)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float& score = of_chunk[2 * half + j];
          score = exp2_fast(fmaf(score, scale, -shift));
          total[j] += score;
        }
    }
  }
  /// The weights of a chunk as the right operand, times `by` of keys g and g + 8.
  __device__ void round(int chunk, const float (&by)[2], std::uint32_t (&weights)[2]) const {
    const Result& w = scores[chunk];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      weights[half] = transposed(round_pair<T>(by[half] * w[2 * half], by[half] * w[2 * half + 1]));
  }
};

/// Sums the warps' results, rescaled to their common maximum, times `by`. `shared`: result_bytes().
template <int E, int tiles, class T>
__device__ void merge_warps(const Decode<T>& args, const Work& work, int group,
                            const Queries<T, E> (&queries)[tiles], float by, float* shared) {
  const Lane lane;
  float* sums = shared;                                  // (warps, group, result_size(E))
  float* state = sums + warps * group * result_size(E);  // (warps, group, 2)
  __syncthreads();                                       // the split before this one is merged
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
#pragma unroll
    for (int w = 0; w < warps; ++w) largest = fmaxf(largest, state[2 * (w * group + row)]);
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const int at = 2 * (w * group + row);
      factor[w] = exp2_fast((state[at] - largest) * scale);
      total = fmaf(factor[w], state[at + 1], total);
    }
    const int head = work.kv * group + row;
    for (int e = lane.lane; e < E; e += 32) {
      float all = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w)
        all = fmaf(factor[w], sums[(w * group + row) * result_size(E) + e], all);
      args.sums(work.number, head)[e] = by * all;
    }
    if (lane.lane == 0) {
      float* to = args.state(work.number, head);
      to[0] = largest, to[1] = total;
    }
  }
}

/// A warp's share of a split: scores of its keys, then the sum of their values.
template <class T, int E, int rows, bool coded>
struct WarpSplit {
  using Shape = DecodeShape<T, E, rows, coded>;
  using Ring = typename Shape::Ring;
  using Of = typename Operands<T, E, coded>::Of;
  static constexpr int tiles = Shape::tiles;
  static constexpr bool shift = coded && halved<T>;

  const Problem<T>& p;
  const Lane lane = {};
  const Operands<T, E, coded> operands = {};
  Queries<T, E> queries[tiles];

  __device__ void load(const Work& work) {
#pragma unroll
    for (int n = 0; n < tiles; ++n) queries[n].load(lane, p, work, n * tile_queries);
  }
  __device__ void begin() {
    const std::uint32_t factor = shift ? round_pair<T>(code_factor<T>, code_factor<T>) : 0;
#pragma unroll
    for (int n = 0; n < tiles; ++n) queries[n].begin(factor);
  }
  /// Scores of chunk c, which is chunk i of the ring's slot.
  __device__ void score(const Ring& ring, const Work& work, int c, int i) {
    Result scores[tiles][2] = {};  // two sums, against waiting for each other
    operands.template for_each<Of::keys>(ring.chunk(i), [&](int at, const Left& a) {
#pragma unroll
      for (int n = 0; n < tiles; ++n)
        multiply<T>(scores[n][at % 2], a, queries[n].q[at][0], queries[n].q[at][1]);
    });
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane.row + 8 * half;
      const bool holds = work.key(lane.warp, c) + row < work.end();
      const float undo = coded ? code_factor<T> * ring.scale(i, row) : 1;
#pragma unroll
      for (int n = 0; n < tiles; ++n)
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j)
          if (holds) queries[n].scores[c][j] = undo * (scores[n][0][j] + scores[n][1][j]);
    }
  }
  __device__ void softmax() {
#pragma unroll
    for (int n = 0; n < tiles; ++n) queries[n].softmax(p.scale * log2_of_e);
  }
  __device__ void add_values(const Ring& ring, int c, int i) {
    std::uint32_t weights[tiles][2];
    float by[2] = {1, 1};
    if constexpr (coded) {
      for (int half = 0; half < 2; ++half)
        by[half] = code_factor<T> * ring.scale(i, lane.row + 8 * half);
    }
#pragma unroll
    for (int n = 0; n < tiles; ++n) queries[n].round(c, by, weights[n]);
    operands.template for_each<Of::values>(ring.chunk(i), [&](int at, const Left& a) {
#pragma unroll
      for (int n = 0; n < tiles; ++n)
        multiply<T>(queries[n].sum[at], a, weights[n][0], weights[n][1]);
    });
  }
};

template <class T, int E, int rows, bool coded>
__global__ void __launch_bounds__(threads, (DecodeShape<T, E, rows, coded>::resident))
    decode(const Decode<T> args) {
  extern __shared__ __align__(128) char shared[];
  detail::release_next();
  using Shape = DecodeShape<T, E, rows, coded>;
  using Ring = typename Shape::Ring;
  const Problem<T>& p = args.problem;
  const int count = args.count(), warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t all = static_cast<std::int64_t>(count) * p.kv_heads;
  const int begin = static_cast<int>(all * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(all * (blockIdx.x + 1) / gridDim.x);
  if (begin == end) return;
  SplitWalk walk(args.splits, count, begin, end);
  Ring ring(p, walk, shared_address(shared) + warp * Ring::bytes);
  bool early = true;
#pragma unroll 1
  for (int i = 0; i < Shape::slots; ++i) {
    // No kernel in flight writes the chunks before a row's own key.
    if (early && (ring.ended() || !args.settled || !ring.settled())) {
      detail::await_previous();
      early = false;
    }
    ring.start();
  }
  if (early) detail::await_previous();

  WarpSplit<T, E, rows, coded> own{p};
  own.load(walk.now());
  for (; !walk.ended(); walk.advance()) {
    const Work& work = walk.now();
    const int chunks = work.chunks(warp);
    own.begin();
    ring.for_each(chunks, [&](int c, int i) { own.score(ring, work, c, i); });
    own.softmax();
    own.load(walk.next());
    ring.for_each(chunks, [&](int c, int i) { own.add_values(ring, c, i); });
    merge_warps<E>(args, work, p.heads / p.kv_heads, own.queries, own.shift ? code_factor<T> : 1,
                   reinterpret_cast<float*>(shared + warps * Ring::bytes));
  }
}

/// A row's parts: `parts` splits from `split` on. Known before they are computed.
struct SplitsOfRow {
  int split, parts;
  template <class T>
  __device__ SplitsOfRow(const Decode<T>& args, int row)
      : split(args.first_splits[row]), parts(args.first_splits[row + 1] - split) {}
};

/// A head of a row: the sum of its parts in order, by a warp, whose lanes have every 32nd number.
/// Sums of several parts are in flight at once, with the largest scores.
template <int E, class T>
__device__ void combine_head(const Decode<T>& args, const SplitsOfRow& of_row, int head,
                             float (&sum)[E / 32]) {
  constexpr int at_once = 4;
  const Lane lane;
  const int split = of_row.split, parts = of_row.parts;
  const float scale = args.problem.scale * log2_of_e;
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
  float total = 0;
  for (float& value : sum) value = 0;
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
  for (float& value : sum) value /= total;
}

/// Rows blockIdx.x: a warp per head.
template <class T, int E>
__global__ void __launch_bounds__(threads) combine(const Decode<T> args) {
  detail::release_next();
  const Lane lane;
  const int row = static_cast<int>(blockIdx.x), heads = args.problem.heads;
  const int head = static_cast<int>(blockIdx.y) * warps + lane.warp;
  const SplitsOfRow parts(args, row);
  detail::await_previous();
  if (head >= heads) return;
  float sum[E / 32];
  combine_head<E>(args, parts, head, sum);
  T* to = args.out + (static_cast<std::int64_t>(row) * heads + head) * E;
#pragma unroll
  for (int e = 0; e < E / 32; ++e) to[e * 32 + lane.lane] = T(sum[e]);
}

/// The same, rounded to codes: a block has all heads of a row, together at most most_coded numbers.
constexpr int coding_threads = 1024, most_coded = coding_threads * detail::pack_size;
template <class T, int E>
__global__ void __launch_bounds__(coding_threads)
    combine_coded(const Decode<T> args, const detail::RowCodes to) {
  __shared__ uint4 memory[coding_threads];
  __shared__ float shared[coding_threads / 32];
  detail::release_next();
  const Lane lane;
  const int row = static_cast<int>(blockIdx.x), heads = args.problem.heads;
  T* const numbers = reinterpret_cast<T*>(memory);
  const SplitsOfRow parts(args, row);
  detail::await_previous();
  for (int head = lane.warp; head < heads; head += coding_threads / 32) {
    float sum[E / 32];
    combine_head<E>(args, parts, head, sum);
#pragma unroll
    for (int e = 0; e < E / 32; ++e) numbers[head * E + e * 32 + lane.lane] = T(sum[e]);
  }
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x) * detail::pack_size;
  detail::RawPack<T> pack[1] = {};
  if (column < heads * E) pack[0] = detail::RawPack<T>::load(numbers + column);
  detail::round_row<coding_threads>(pack, row, to, shared);
  if (column < heads * E)
    pack[0].store(args.out + static_cast<std::int64_t>(row) * heads * E + column);
}

}  // namespace tern::ops::cuda::paged
