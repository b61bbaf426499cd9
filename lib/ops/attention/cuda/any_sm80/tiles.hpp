/// Tiles of the kernels under any mask: sizes, shared memory, and the attention mask. Pure
/// functions, tested on the host.
///
/// A block of 4 warps owns 64 rows (queries; keys in the pass for dk and dv), a warp 16 of them:
/// one group of Pattern. The other axis streams by in tiles of 64 rows, two in flight, and a warp
/// takes them in chunks of 16 rows. Masked parts are skipped by blocks at 64 x 64 and by warps at
/// 16 x 16, so short blocks and packed samples cost little more than their pairs.
#pragma once
#include <cstddef>

#include "ops/attention/pattern.hpp"

namespace tern::ops::cuda::any_sm80 {

enum class Pass { forward, backward_query, backward_key };

constexpr int warps = 4, threads = 32 * warps;
constexpr int chunk_rows = Pattern::group, tile_chunks = warps,
              tile_rows = tile_chunks * chunk_rows;
constexpr int stages = 2;        // tiles of the other axis in flight
constexpr int piece_bytes = 16;  // the unit of copies

TERN_FUNCTION constexpr bool serves(std::size_t head_size) {
  return head_size == 32 || head_size == 64 || head_size == 128;
}
TERN_FUNCTION constexpr int tiles_of(int rows) { return (rows + tile_rows - 1) / tile_rows; }

/// A row of a tile: the E numbers of a head, of `width` bytes each: 2, or 4 for float32, which is
/// multiplied in TF32.
struct HeadRow {
  int size, width = 2;
  TERN_FUNCTION constexpr int bytes() const { return size * width; }
};

/// Bytes of a tile.
TERN_FUNCTION constexpr int tile_bytes(int row_bytes) { return tile_rows * row_bytes; }
/// Byte offset of a 16-byte piece of a row within a tile, swizzled so that the same piece of eight
/// neighboring rows has no bank conflict.
TERN_FUNCTION constexpr int swizzle(int row, int row_bytes) {
  return row_bytes == 32 ? row / 4 % 2 : row_bytes == 64 ? row / 2 % 4 : row % 8;
}
TERN_FUNCTION constexpr int piece_offset(int row, int piece, int row_bytes) {
  return row * row_bytes + (piece ^ swizzle(row, row_bytes)) * piece_bytes;
}

/// The pass for dk and dv keeps its own rows of k and v in registers where they fit.
TERN_FUNCTION constexpr bool keeps_rows(HeadRow row) { return row.size <= 64; }
/// The pass for dq keeps q in registers, and dout where that costs no resident block.
TERN_FUNCTION constexpr bool keeps_dout(HeadRow row) {
  return row.width == 2 ? row.size != 64 : row.size <= 64;
}
/// Statistics of a tile of queries in the pass for dk and dv: spans, lse and delta.
constexpr int statistics_bytes = tile_rows * static_cast<int>(sizeof(KeySpans) + 2 * sizeof(float));
/// Shared memory of a block: two stages of two tiles, and a tile of its own rows; for dk and dv two
/// of them, unless they stay in registers, and statistics.
TERN_FUNCTION constexpr int shared_bytes(Pass pass, HeadRow row) {
  const int tile = tile_bytes(row.bytes()), staged = stages * 2 * tile;
  if (pass != Pass::backward_key) return staged + tile;
  return staged + stages * statistics_bytes + (keeps_rows(row) ? 0 : 2 * tile);
}
/// Least resident blocks per multiprocessor: bounds the registers per thread.
TERN_FUNCTION constexpr int resident_blocks(Pass pass, HeadRow row) {
  if (row.width == 4) return row.size > 64 ? 1 : 2;
  if (row.size > 64) return 2;
  return pass == Pass::backward_key ? 3 : 4;
}

/// Extents of the attention mask.
struct Extent {
  int queries, keys;
};

struct Problem {
  Pattern pattern;
  Extent extent;
  int batch, heads, kv_heads;
  float scale;
};

/// Loads in 16-byte accesses; the arrays are aligned.
template <class S>
TERN_FUNCTION S load_aligned(const S* from) {
  S value;
  memcpy(&value, __builtin_assume_aligned(from, 16), sizeof(S));
  return value;
}

/// Keys that a query of sequence b attends to; none for a query beyond the last.
TERN_FUNCTION KeySpans spans_of(const Pattern& pattern, const Extent& extent, int b, int query) {
  if (query >= extent.queries) return {};
  if (pattern.kind == Pattern::Kind::spans)
    return load_aligned(pattern.spans + b * static_cast<std::int64_t>(pattern.queries) + query);
  const int last = query + pattern.query_offset + 1;
  const bool whole = pattern.kind == Pattern::Kind::full || last >= extent.keys;
  return {{0, whole ? extent.keys : last}, {}};
}

/// The hull of queries [16 group, 16 group + 16); empty beyond the last.
TERN_FUNCTION SpanHull hull_of(const Pattern& pattern, const Extent& extent, int b, int group) {
  const int first = group * Pattern::group;
  if (first >= extent.queries) return {};
  if (pattern.kind == Pattern::Kind::spans) {
    const int groups = Pattern::groups(pattern.queries);
    return load_aligned(pattern.hulls + b * static_cast<std::int64_t>(groups) + group);
  }
  const int last =
      first + Pattern::group <= extent.queries ? first + Pattern::group : extent.queries;
  return {spans_of(pattern, extent, b, last - 1), spans_of(pattern, extent, b, first)};
}

/// Whether any query of a tile attends to any key of a tile (by the hulls of the groups).
TERN_FUNCTION bool tiles_meet(const Pattern& pattern, const Extent& extent, int b, int query_tile,
                              int key_tile) {
  bool meet = false;
  for (int g = 0; g < tile_chunks; ++g)
    meet |= hull_of(pattern, extent, b, query_tile * tile_chunks + g)
                .widest.meets(key_tile * tile_rows, (key_tile + 1) * tile_rows);
  return meet;
}

}  // namespace tern::ops::cuda::any_sm80
