/// Paged attention of prefill chunks, including their own rows: one block per head and 64 positions
/// that begin at a multiple of 64, so a row's sums do not depend on the chunks.
#pragma once
#include "ops/decode/cuda/detail/paged_attention_parts.hpp"

namespace tern::ops::cuda::paged {

/// Places within (pages, K, P) of 64 keys of a head from `first`, a multiple of 64, on: lane l has
/// that of the key 16 (l % 4) further, 0 from `end` on. Pages have 16 tokens or more, so those
/// between follow it. A tile's are read a tile ahead.
template <class T>
__device__ int places_of(const Problem<T>& p, const std::int32_t* pages, int kv, int first,
                         int end) {
  const int key = first + static_cast<int>(threadIdx.x) % tile_chunks * chunk_rows;
  return key < end ? p.place_of(pages, kv, key) : 0;
}

/// Stages of a tile of keys and one of values each, in shared memory, as they are in the cache; of
/// codes then the scales of both.
template <class T, int E, bool coded>
class Stages {
  static constexpr int row = width<coded> * E, tile = tile_bytes(row);
  static constexpr int scales = coded ? tile_rows * static_cast<int>(sizeof(float)) : 0;

 public:
  static constexpr int bytes = 2 * (tile + scales);  // of a stage
  explicit __device__ Stages(std::uint32_t first) : first_(first) {}

  __device__ std::uint32_t keys(int stage) const { return first_ + stage * bytes; }
  __device__ std::uint32_t values(int stage) const { return keys(stage) + tile; }
  /// Scales of the tile's keys, then of its values.
  __device__ std::uint32_t undo(int stage, int side) const {
    return keys(stage) + 2 * tile + side * scales;
  }

  /// Starts the copy of keys [first, first + 64) and of their values, with places_of() them; zeros
  /// from `end` on. By all threads.
  __device__ void copy(int stage, const Problem<T>& p, int places, int first, int end) const {
    constexpr int pieces = row / piece_bytes, step = threads / pieces;
    const int own = static_cast<int>(threadIdx.x) / pieces;
    const int piece = static_cast<int>(threadIdx.x) % pieces;
#pragma unroll
    for (int i = 0; i < tile_rows; i += step) {
      const int place = place_of(places, own + i), to = piece_offset(own + i, piece, row);
      const bool valid = first + own + i < end;
      const std::int64_t from = static_cast<std::int64_t>(place) * row + piece * piece_bytes;
      copy_16(keys(stage) + to, static_cast<const char*>(p.keys.data) + from, valid);
      copy_16(values(stage) + to, static_cast<const char*>(p.values.data) + from, valid);
    }
    if constexpr (coded) {
      static_assert(threads == 2 * tile_rows);
      const int side = static_cast<int>(threadIdx.x) / tile_rows;
      const int key = static_cast<int>(threadIdx.x) % tile_rows;
      const float* from = side == 0 ? p.keys.undo : p.values.undo;
      copy_4(undo(stage, side) + key * 4, from + place_of(places, key), first + key < end);
    }
  }

 private:
  __device__ static int place_of(int places, int key) {
    return __shfl_sync(0xffffffffu, places, key / chunk_rows) + key % chunk_rows;
  }
  std::uint32_t first_;
};

/// Scores of keys `column`, + 1, + 8 and + 9 become -inf from `end` on in row g, from `end_8` on in
/// row g + 8.
__device__ inline void mask_from(Result (&scores)[2], int column, int end, int end_8) {
#pragma unroll
  for (int n = 0; n < 2; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (column + n * 8 + i % 2 >= (i / 2 ? end_8 : end)) scores[n][i] = minus_infinity();
}

template <int E>
__device__ void scale_rows(Result (&sum)[E / 8], const float (&factor)[2]) {
#pragma unroll
  for (int n = 0; n < E / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[n][i] *= factor[i / 2];
}

template <class T>
struct Prefill {
  Problem<T> problem;
  const Piece* tiles;
  T* out;  // (N, H E)
};

/// Rows of a segment in a block: of its 64 positions those in [first, last).
struct OwnRows {
  int position, first, last, row;  // row: of `position`, which may lie before the segment

  __device__ OwnRows(const Segment& s, int part)
      : position(part * PagedRows::tile_rows),
        first(max(position, s.position)),
        last(min(position + PagedRows::tile_rows, s.position + s.rows)),
        row(s.row + position - s.position) {}
  __device__ bool holds(int i) const { return position + i >= first && position + i < last; }
};

template <int E, class T>
__device__ void copy_queries(std::uint32_t to, const Problem<T>& p, const OwnRows& own, int h) {
  constexpr int pieces = E / piece_size;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < tile_rows * pieces; i += threads) {
    const int row = i / pieces, piece = i % pieces;
    const bool valid = own.holds(row);
    const T* from = p.qkv + static_cast<std::int64_t>(valid ? own.row + row : 0) * p.width + h * E +
                    piece * piece_size;
    copy_16(to + piece_offset(row, piece, row_bytes<E>), from, valid);
  }
}

/// The warp's 16 rows = factor * sum, through its chunk of the tile of queries in shared memory.
template <int E, class T>
__device__ void write_own_rows(const Lane& lane, const Result (&sum)[E / 8],
                               const float (&factor)[2], char* tile, const Prefill<T>& args,
                               const OwnRows& own, int h) {
  constexpr int pieces = E / piece_size;
  char* chunk = tile + lane.warp * chunk_rows * E * 2;
  __syncwarp();
#pragma unroll
  for (int piece = 0; piece < pieces; ++piece)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<std::uint32_t*>(
          chunk + piece_offset(lane.row + 8 * half, piece, row_bytes<E>) + lane.pair * 4) =
          round_pair<T>(factor[half] * sum[piece][2 * half],
                        factor[half] * sum[piece][2 * half + 1]);
  __syncwarp();
#pragma unroll
  for (int i = 0; i < chunk_rows * pieces / 32; ++i) {
    const int n = i * 32 + lane.lane, row = n / pieces, piece = n % pieces;
    const int at = lane.warp * chunk_rows + row;
    if (own.holds(at))
      *reinterpret_cast<uint4*>(
          args.out + (static_cast<std::int64_t>(own.row + at) * args.problem.heads + h) * E +
          piece * piece_size) =
          *reinterpret_cast<const uint4*>(chunk + piece_offset(row, piece, row_bytes<E>));
  }
}

/// Shared memory of a block: its queries, two stages of tiles, of codes one of numbers as well.
template <class T, int E, bool coded>
TERN_FUNCTION constexpr int prefill_bytes() {
  return (coded ? 3 : 1) * tile_bytes(row_bytes<E>) + 2 * Stages<T, E, coded>::bytes;
}

/// The warp's 16 rows of a tile of codes, as numbers of T.
template <class T, int E>
__device__ void expand_rows(const Lane& lane, std::uint32_t to, std::uint32_t codes,
                            std::uint32_t undo) {
  constexpr int groups = E / static_cast<int>(code_group);
#pragma unroll
  for (int i = 0; i < chunk_rows * groups / 32; ++i) {
    const int n = i * 32 + lane.lane, group = n % groups;
    const int row = lane.warp * chunk_rows + n / groups;
    const uint4 read = load_words(codes + piece_offset(row, group, E));
    const float by = __uint_as_float(load_word(undo + row * 4));
    const std::uint32_t factor = round_pair<T>(by, by);
    uint4 low, high;
    const auto expand = [&](std::uint32_t word, std::uint32_t& first, std::uint32_t& second) {
      expand_codes<T>(word, first, second);
      first = times<T>(first, factor), second = times<T>(second, factor);
    };
    expand(read.x, low.x, high.x), expand(read.y, low.y, high.y);
    expand(read.z, low.z, high.z), expand(read.w, low.w, high.w);
    store_words(to + piece_offset(row, 2 * group, row_bytes<E>), low);
    store_words(to + piece_offset(row, 2 * group + 1, row_bytes<E>), high);
  }
}

// blockIdx.x: the tile of queries, blockIdx.y: the head.
template <class T, int E, bool coded>
__global__ void __launch_bounds__(threads, resident_blocks(Pass::forward, row_of<T, E>))
    prefill(const Prefill<T> args) {
  extern __shared__ __align__(128) char shared[];
  detail::await_previous();
  const Problem<T>& p = args.problem;
  const Lane lane;
  const Piece piece = args.tiles[blockIdx.x];
  const Segment segment = p.segments[piece.segment];
  const int h = static_cast<int>(blockIdx.y), kv = h / (p.heads / p.kv_heads);
  const OwnRows own(segment, piece.part);
  const std::int32_t* pages = p.tables + segment.table;

  const std::uint32_t queries = shared_address(shared);
  constexpr int tile_size = tile_bytes(row_bytes<E>);
  using Tiles = Stages<T, E, coded>;
  const Tiles staged(queries + tile_size);
  const std::uint32_t numbers = queries + tile_size + 2 * Tiles::bytes;  // of codes
  copy_queries<E>(queries, p, own, h);
  staged.copy(0, p, places_of(p, pages, kv, 0, own.last), 0, own.last);
  int places = places_of(p, pages, kv, tile_rows, own.last);
  const auto first = Parts<row_bytes<E>>::rows_first(lane.lane);
  const auto last = Parts<row_bytes<E>>::rows_last(lane.lane);
  const Columns<T, E> columns;
  wait_for_copies();
  __syncthreads();
  KeptRows<row_bytes<E>> q;
  q.take(first, queries, lane.warp);
  Result sum[E / 8] = {};
  RunningSoftmax softmax;
  const float scale = p.scale * log2_of_e;
  for (int tile = 0; tile <= piece.part; ++tile) {
    const int stage = tile % 2, k0 = tile * tile_rows;
    wait_for_copies();
    __syncthreads();  // this stage has arrived, and the other is free
    if (tile < piece.part) {
      staged.copy(stage ^ 1, p, places, k0 + tile_rows, own.last);
      places = places_of(p, pages, kv, k0 + 2 * tile_rows, own.last);
    }
    const std::uint32_t keys = coded ? numbers : staged.keys(stage);
    const std::uint32_t values = coded ? numbers + tile_size : staged.values(stage);
    if (coded) {
      expand_rows<T, E>(lane, keys, staged.keys(stage), staged.undo(stage, 0));
      expand_rows<T, E>(lane, values, staged.values(stage), staged.undo(stage, 1));
      __syncthreads();
    }
    // On the diagonal a warp needs the chunks up to its own.
    const int chunks = tile < piece.part ? tile_chunks : lane.warp + 1;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk += 2) {
      const bool two = chunk + 1 < chunks;
      Result scores[2][2];
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[1][0][i] = scores[1][1][i] = minus_infinity();
      product<T>(scores[0], q, last, keys, chunk);
      if (two) product<T>(scores[1], q, last, keys, chunk + 1);
      if (tile == piece.part) {
        const int column = chunk * chunk_rows + lane.pair * 2;
        const int end = lane.warp * chunk_rows + lane.row + 1;
        mask_from(scores[0], column, end, end + 8);
        mask_from(scores[1], column + chunk_rows, end, end + 8);
      }
      float factor[2];
      softmax.update(scores, scale, factor);
      scale_rows<E>(sum, factor);
      Left weights;
      round_results<T>(weights, scores[0]);
      columns.add_product(sum, weights, values, chunk);
      if (!two) continue;
      round_results<T>(weights, scores[1]);
      columns.add_product(sum, weights, values, chunk + 1);
    }
  }
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) factor[half] = 1 / row_sum(softmax.total[half]);
  write_own_rows<E>(lane, sum, factor, shared, args, own, h);
}

}  // namespace tern::ops::cuda::paged
