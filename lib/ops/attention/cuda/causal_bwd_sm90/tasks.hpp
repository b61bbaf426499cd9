/// Tasks of the causal attention kernels for Hopper, as functions tested on the host.
///
/// A task is a block of 128 rows of one head, 64 for each of two warpgroups, against the tiles of
/// 64 rows of the other axis that causality leaves: for queries those before, for keys those after.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/types.hpp"

namespace tern::ops::cuda::causal_bwd_sm90 {

constexpr int tile_rows = 64, block_tiles = 2, block_rows = block_tiles * tile_rows;

/// q, out (B, T, H, E), k, v (B, T, K, E), H a multiple of K.
struct Problem {
  int batch, tokens, heads, kv_heads;
  float scale;
};

/// Whether the kernels take heads of this size and this many tokens.
constexpr bool serves(int head_size, std::int64_t tokens) {
  return (head_size == 64 || head_size == 128) && tokens % 8 == 0;
}

enum class Owner { queries, keys };

TERN_FUNCTION constexpr int tiles_of(int tokens) { return (tokens + tile_rows - 1) / tile_rows; }
TERN_FUNCTION constexpr int blocks_of(int tokens) { return (tokens + block_rows - 1) / block_rows; }

struct Task {
  int sequence, head, block;  // head: of queries or of keys, as the owner
};

/// Heads of all sequences, numbered b * heads + h, in chunks whose tensors stay in the L2 cache.
/// Within a chunk the longest tasks come first, so that the last tasks of all are short.
struct TaskOrder {
  static constexpr int chunk_numbers = 32768 * 64;  // of one tensor: about 20 MB of all
  int heads, blocks, chunk, tasks;
  Owner owner;

  TERN_FUNCTION TaskOrder(const Problem& p, Owner of, int head_size)
      : heads(of == Owner::queries ? p.heads : p.kv_heads),
        blocks(blocks_of(p.tokens)),
        chunk(chunk_numbers / (p.tokens * head_size) > 1 ? chunk_numbers / (p.tokens * head_size)
                                                         : 1),
        tasks(p.batch * heads * blocks),
        owner(of) {}

  TERN_FUNCTION Task at(int number) const {
    const int first = number / (chunk * blocks) * chunk, rest = tasks / blocks - first;
    const int here = rest < chunk ? rest : chunk, within = number - first * blocks;
    const int head = first + within % here, rank = within / here;
    return {head / heads, head % heads, owner == Owner::queries ? blocks - 1 - rank : rank};
  }
};

/// Tiles of the other axis that the block streams: [first, last).
struct TileRange {
  int first, last;
};
TERN_FUNCTION constexpr TileRange tiles_for(Owner owner, int block, int tiles) {
  const int begin = block * block_tiles, end = begin + block_tiles;
  return owner == Owner::queries ? TileRange{0, end < tiles ? end : tiles}
                                 : TileRange{begin, tiles};
}

/// Floats of the statistics that the pass over queries leaves for the pass over keys: for each
/// tile of each head 64 times log2(e) lse, then 64 times delta; zeros beyond the last query.
TERN_FUNCTION constexpr std::size_t statistics_size(const Problem& p) {
  return static_cast<std::size_t>(p.batch) * p.heads * tiles_of(p.tokens) * 2 * tile_rows;
}

}  // namespace tern::ops::cuda::causal_bwd_sm90
