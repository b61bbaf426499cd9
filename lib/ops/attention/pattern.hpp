/// Attention mask as a pattern. A small value type, copied into kernels: for a pair of positions it
/// says whether attention is allowed, and for a tile of queries x keys whether none, all or some
/// pairs are, so kernels skip 'none' tiles and test pairs only in 'mixed' ones.
///
/// Kinds: `full`; `causal`; and `spans`, where each query of each sequence names two ranges of keys
/// it attends to. Two ranges suffice for block diffusion: a noisy token attends to the clean
/// context of its sample and its own noisy block, a clean one to the context only, padding to
/// nothing; samples packed in a row name their own positions. Made by SpanTable.
#pragma once
#include <cstdint>
#include <vector>

#include "base/types.hpp"

namespace tern::ops {

enum class Tile { none, all, mixed };

/// Keys [first, last).
struct Span {
  std::int32_t first = 0, last = 0;

  TERN_FUNCTION bool empty() const { return first >= last; }
  TERN_FUNCTION bool holds(int key) const { return key >= first && key < last; }
  /// Whether it holds all keys of [k0, k1) (covers), or any (meets).
  TERN_FUNCTION bool covers(int k0, int k1) const { return first <= k0 && k1 <= last; }
  TERN_FUNCTION bool meets(int k0, int k1) const { return !empty() && first < k1 && k0 < last; }
};

/// Keys that one query attends to.
struct KeySpans {
  Span context, own;

  TERN_FUNCTION bool holds(int key) const { return context.holds(key) || own.holds(key); }
  TERN_FUNCTION bool covers(int k0, int k1) const {
    return context.covers(k0, k1) || own.covers(k0, k1);
  }
  TERN_FUNCTION bool meets(int k0, int k1) const {
    return context.meets(k0, k1) || own.meets(k0, k1);
  }
};

/// Bounds for a group of neighboring queries: keys that any attends to, and keys that all do.
struct SpanHull {
  KeySpans widest, common;
};

struct Pattern {
  enum class Kind { full, causal, spans };
  static constexpr int group = 16;  // queries per hull

  Kind kind = Kind::causal;
  /// causal: position of query 0 on the key axis: 0 in training, the cached length in generation.
  int query_offset = 0;
  // spans: arrays in device memory.
  int queries = 0;                  // Tq
  const KeySpans* spans = nullptr;  // (B, Tq)
  const SpanHull* hulls = nullptr;  // (B, ceil(Tq / group))

  /// That of the sequences from `first` on.
  Pattern from(int first) const {
    Pattern result = *this;
    if (kind != Kind::spans) return result;
    result.spans += first * std::int64_t(queries);
    result.hulls += first * std::int64_t(groups(queries));
    return result;
  }
  static TERN_FUNCTION int groups(int queries) { return (queries + group - 1) / group; }

  /// Whether `query` of sequence b attends to `key`.
  TERN_FUNCTION bool allowed(int b, int query, int key) const {
    if (kind == Kind::spans) return spans[b * std::int64_t(queries) + query].holds(key);
    return kind == Kind::full || key <= query + query_offset;
  }
  /// Queries [q0, q1) of sequence b against keys [k0, k1). 'none' and 'all' are exact; 'mixed' may
  /// be conservative.
  TERN_FUNCTION Tile tile(int b, int q0, int q1, int k0, int k1) const {
    if (kind == Kind::spans) return span_tile(b, q0, q1, k0, k1);
    if (kind == Kind::full || k1 - 1 <= q0 + query_offset) return Tile::all;
    return k0 > q1 - 1 + query_offset ? Tile::none : Tile::mixed;
  }
  /// Allowed pairs of T queries and T keys, for FLOP counts; causal and full only.
  double pairs(double tokens) const {
    return kind == Kind::full ? tokens * tokens : tokens * (tokens + 1) / 2;
  }

 private:
  TERN_FUNCTION Tile span_tile(int b, int q0, int q1, int k0, int k1) const {
    bool none = true, all = true;
    if (q1 - q0 < group) {
      const KeySpans* row = spans + b * std::int64_t(queries);
      for (int q = q0; q < q1; ++q) {
        none = none && !row[q].meets(k0, k1);
        all = all && row[q].covers(k0, k1);
      }
    } else {
      const SpanHull* row = hulls + b * std::int64_t(groups(queries));
      for (int g = q0 / group; g * group < q1; ++g) {
        none = none && !row[g].widest.meets(k0, k1);
        all = all && row[g].common.covers(k0, k1);
      }
    }
    return none ? Tile::none : all ? Tile::all : Tile::mixed;
  }
};

/// Host side of a spans pattern: spans of (B, T) queries, initially empty, and their hulls.
class SpanTable {
 public:
  SpanTable(std::size_t batch, std::size_t tokens);
  void clear();
  KeySpans& at(std::size_t b, std::size_t query) { return spans_[b * tokens_ + query]; }
  /// Makes the hulls from the spans.
  void finish();

  const std::vector<KeySpans>& spans() const { return spans_; }
  const std::vector<SpanHull>& hulls() const { return hulls_; }
  /// The pattern over copies of both arrays (in device memory, or these very arrays on the host).
  Pattern pattern(const KeySpans* spans, const SpanHull* hulls) const;

 private:
  std::size_t batch_, tokens_;
  std::vector<KeySpans> spans_;
  std::vector<SpanHull> hulls_;
};

}  // namespace tern::ops
