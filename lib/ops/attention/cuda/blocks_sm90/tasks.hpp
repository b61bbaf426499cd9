/// Tasks and tiles of the kernels under key spans for Hopper, as functions tested on the host.
///
/// A task is a block of neighboring tiles of 64 rows of one head, one for each warpgroup: queries,
/// or keys in the pass for dk and dv. Against it stream the tiles of the other axis that any of its
/// tiles meets, each with what every warpgroup does with it.
#pragma once
#include "ops/attention/cuda/any_sm80/tiles.hpp"

namespace tern::ops::cuda::blocks_sm90 {

using any_sm80::Extent, any_sm80::Pass, any_sm80::Problem;
using any_sm80::spans_of, any_sm80::tile_rows, any_sm80::tiles_of;

struct Task {
  int sequence, head, block;  // head: of queries or of keys, as the pass; block < 0: no more tasks
  bool meets;                 // any tile of the other axis
};

/// Heads of all sequences, numbered b * heads + h, in chunks whose tensors stay in the L2 cache.
/// Within a chunk those tasks come first that are the longest if queries see what is before them.
struct TaskOrder {
  static constexpr int chunk_tokens = 32768;  // about 17 MB of q, k, v and out
  int heads, blocks, chunk, tasks;
  bool backwards;

  TERN_FUNCTION TaskOrder(const Problem& p, Pass pass, int block_tiles)
      : heads(pass == Pass::backward_key ? p.kv_heads : p.heads),
        blocks(blocks_of(pass == Pass::backward_key ? p.extent.keys : p.extent.queries,
                         block_tiles * tile_rows)),
        chunk(chunk_tokens > p.extent.keys ? chunk_tokens / p.extent.keys : 1),
        tasks(p.batch * heads * blocks),
        backwards(pass != Pass::backward_key) {}

  TERN_FUNCTION Task at(int number) const {
    const int first = number / (chunk * blocks) * chunk, rest = tasks / blocks - first;
    const int here = rest < chunk ? rest : chunk, within = number - first * blocks;
    const int head = first + within % here, rank = within / here;
    return {head / heads, head % heads, backwards ? blocks - 1 - rank : rank, false};
  }

 private:
  TERN_FUNCTION static int blocks_of(int rows, int block) { return (rows + block - 1) / block; }
};

/// What the queries of a tile see of the keys of a tile, by the hulls of their groups. A tile of
/// keys that reaches beyond the last one is never seen whole.
TERN_FUNCTION Tile tile_of(const Problem& p, int b, int query_tile, int key_tile) {
  const int k0 = key_tile * tile_rows, k1 = k0 + tile_rows;
  constexpr int hulls = tile_rows / Pattern::group;
  bool some = false, all = true;
  for (int g = 0; g < hulls; ++g) {
    const SpanHull hull = any_sm80::hull_of(p.pattern, p.extent, b, query_tile * hulls + g);
    some |= hull.widest.meets(k0, k1);
    all &= hull.common.covers(k0, k1);
  }
  return !some ? Tile::none : all ? Tile::all : Tile::mixed;
}

/// A tile of the other axis, as streamed: its number, what the block's warpgroups see of it (2 bits
/// each), and whether it is the task's last.
struct Step {
  static constexpr int most_groups = 4, last_bit = 1 << 2 * most_groups;
  int bits;

  TERN_FUNCTION static Step make(int tile, int seen, bool last) {
    return {tile * 2 * last_bit + (last ? last_bit : 0) + seen};
  }
  TERN_FUNCTION int tile() const { return bits / (2 * last_bit); }
  TERN_FUNCTION bool last() const { return (bits & last_bit) != 0; }
  TERN_FUNCTION Tile seen_by(int group) const { return static_cast<Tile>(bits >> 2 * group & 3); }
};

/// Bit i: whether the spans hold key `first` + i, i < width <= 32.
TERN_FUNCTION unsigned window(const Span& span, int first, int width) {
  const auto clamped = [](int x, int low, int high) { return x < low ? low : x > high ? high : x; };
  const int begin = clamped(span.first - first, 0, width);
  const int end = clamped(span.last - first, begin, width);
  return static_cast<unsigned>((std::uint64_t{1} << end) - (std::uint64_t{1} << begin));
}
TERN_FUNCTION unsigned window(const KeySpans& spans, int first, int width) {
  return window(spans.context, first, width) | window(spans.own, first, width);
}

/// What a tile of queries sees of 32 tiles of keys: bit i is for number i.
struct Seen {
  unsigned some, mixed;
  TERN_FUNCTION Tile of(int i) const {
    return static_cast<Tile>((some >> i & 1) + (mixed >> i & 1));
  }
};
constexpr int seen_tiles = 32;
TERN_FUNCTION int seen_words(const Problem& p) {  // of a tile of queries
  return (tiles_of(p.extent.keys) + seen_tiles - 1) / seen_tiles;
}
TERN_FUNCTION std::int64_t seen_at(const Problem& p, int b, int query_tile, int word) {
  return (static_cast<std::int64_t>(b) * tiles_of(p.extent.queries) + query_tile) * seen_words(p) +
         word;
}
TERN_FUNCTION std::size_t seen_size(const Problem& p) {
  return static_cast<std::size_t>(seen_at(p, p.batch, 0, 0));
}

/// Floats of the statistics that the pass for dq leaves for the pass for dk and dv: for each tile
/// of queries of each head 64 times log2(e) lse, then 64 times delta; zeros beyond the last query.
TERN_FUNCTION std::size_t statistics_size(const Problem& p) {
  return static_cast<std::size_t>(p.batch) * static_cast<std::size_t>(p.heads) *
         static_cast<std::size_t>(tiles_of(p.extent.queries)) * 2 * tile_rows;
}

}  // namespace tern::ops::cuda::blocks_sm90
