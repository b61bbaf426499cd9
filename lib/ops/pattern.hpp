/// Who may attend to whom. A small value type, copied into kernels: it answers for a pair of
/// positions whether attention is allowed, and for a tile of queries x keys whether none, all or
/// some pairs are, so that kernels skip 'none' tiles and test pairs in 'mixed' ones only.
#pragma once
#include "base/types.hpp"

namespace tern::ops {

enum class Tile { none, all, mixed };

struct Pattern {
  enum class Kind { full, causal };
  Kind kind = Kind::causal;
  /// Position of query 0 on the axis of the keys: 0 in training; the cached length in generation.
  int query_offset = 0;

  TERN_FUNCTION bool allowed(int query, int key) const {
    return kind == Kind::full || key <= query + query_offset;
  }
  /// Queries [q0, q1) against keys [k0, k1).
  TERN_FUNCTION Tile tile(int q0, int q1, int k0, int k1) const {
    if (kind == Kind::full || k1 - 1 <= q0 + query_offset) return Tile::all;
    return k0 > q1 - 1 + query_offset ? Tile::none : Tile::mixed;
  }
  /// Allowed pairs of T queries and T keys, for FLOP counts.
  double pairs(double tokens) const {
    return kind == Kind::full ? tokens * tokens : tokens * (tokens + 1) / 2;
  }
};

}  // namespace tern::ops
