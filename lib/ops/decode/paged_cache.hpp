/// Operations of the generation engine on a paged cache, for rows of sequences of different
/// lengths. Conventions: ops.hpp. Batch-invariant in every precision.
///
/// Further legend: P tokens per page; S segments per pass, each a run of rows that are consecutive
/// tokens of one sequence.
#pragma once
#include "ops/core/operation.hpp"
#include "ops/elementwise/fp8_rows.hpp"

namespace tern::ops {

/// Where the code of number e of a head is among the head's: if E is a multiple of 16, in the order
/// in which a lane of a tensor core reads them.
KOKKOS_INLINE_FUNCTION constexpr std::size_t cached_at(std::size_t e, std::size_t E) {
  return E % code_group == 0 ? code_place(e) : e;
}

/// Keys or values of a layer in E4M3: code times `undo` of its token and head, a power of two, so
/// that the numbers are exact in every storage type.
struct CodedPages {
  Tensor3<std::uint8_t> codes;  // (pages, K, P E)
  Tensor3<float> undo;          // (pages, K, P); NaN where a number was not finite
};

/// The memory of keys or of values: numbers of T, or codes with undo.
struct PageMemory {
  void* data;
  float* undo;
};

/// Keys and values of a layer, (pages, K, P E) each: token t of a page and head is at t E. Either in
/// T or in E4M3, rounded once when they are stored.
template <class T>
struct PagedCache {
  Tensor3<T> keys, values;
  std::size_t page_tokens;  // P, a power of two
  CodedPages coded_keys = {}, coded_values = {};

  bool coded() const { return coded_keys.codes.size() > 0; }
  std::size_t heads() const { return coded() ? coded_keys.codes.extent(1) : keys.extent(1); }
  std::size_t head_size() const {
    return (coded() ? coded_keys.codes.extent(2) : keys.extent(2)) / page_tokens;
  }
  PageMemory key_memory() const { return memory(keys, coded_keys); }
  PageMemory value_memory() const { return memory(values, coded_values); }

 private:
  PageMemory memory(const Tensor3<T>& numbers, const CodedPages& codes) const {
    if (coded()) return {codes.codes.data(), codes.undo.data()};
    return {numbers.data(), nullptr};
  }
};

struct Segment {
  std::int32_t row, rows;  // first row in the pass, and count
  std::int32_t position;   // first row's position in its sequence
  std::int32_t table;      // start of its pages in the tables
};
/// Part of a segment's rows.
struct Piece {
  std::int32_t segment, part;
};
/// Part of a single row's keys: split_keys of them from `first` on, or as many as there are.
struct Split {
  std::int32_t row, position;  // of the row, in the pass and in its sequence
  std::int32_t first;
  std::int32_t table;  // start of its pages in the tables
};

/// The N rows of a pass: first segments of one row (decoding), then the others (prefill chunks). A
/// row attends to the tokens of its sequence up to its own position.
struct PagedRows {
  std::size_t singles;                   // leading segments of one row
  Vector<const Segment> segments;        // (S)
  Vector<const std::int32_t> tables;     // pages in token order, by segment
  Vector<const std::int32_t> positions;  // (N)
  Vector<const std::int32_t> table_of;   // (N) start of the row's pages in the tables
  Vector<const std::int32_t> places;     // (N) where the row is stored: page * P + token within it
  /// Of single rows, in order of row and first key, which is a multiple of split_keys.
  Vector<const Split> splits;
  /// (singles + 1) Where those of each single row begin, then their number. Kernels read it here, so
  /// that passes of as many rows differ in nothing that the host gives them.
  Vector<const std::int32_t> first_splits;
  /// Other segments: part p has positions [tile_rows p, ...).
  Vector<const Piece> tiles;
  /// Keys and values before its own that a single row attends to were stored by earlier passes,
  /// none by this one, so they may be read before this one's paged_store.
  bool settled = false;

  static constexpr int split_keys = 256, tile_rows = 64;
};

/// Processing of q and k between projection and attention.
template <class T>
struct HeadStage {
  Vector<const T> q_gain, k_gain;     // (E) of RMSNorm per head; empty: no norm
  double eps;                         // the norm's
  Matrix<const Accumulate<T>> table;  // (positions, E) of rotation; empty: no rotation
};

/// Normalizes q and k of qkv (N, (H + 2K) E), rotates them to the rows' positions (both in place),
/// and stores k and v at the rows' places, in E4M3 with the largest scale that e4m3_scale_in gives.
template <class T>
struct PagedStore {
  static constexpr Traits traits{.name = "tern::paged_store", .native = is_half<T>};
  PagedRows rows;
  Matrix<T> qkv;
  std::size_t heads;
  HeadStage<T> stage;
  PagedCache<T> cache;

  void check() const;
  static void portable(const Context&, const PagedStore&);
  static bool native(const Context&, const PagedStore&);
};

/// out (N, H E) = attention of q, the first H E columns of qkv, over the stored keys and values,
/// H a multiple of K (grouped queries). partial: workspace, paged_partials() elements. With `coded`,
/// out is rounded as by fp8_round_rows.
template <class T>
struct PagedAttention {
  static constexpr Traits traits{.name = "tern::paged_attention", .native = is_half<T>};
  PagedRows rows;
  double scale;
  Matrix<const T> qkv;
  PagedCache<T> cache;
  Vector<Accumulate<T>> partial;
  Matrix<T> out;
  Fp8Rows coded = {};

  void check() const;
  static void portable(const Context&, const PagedAttention&);
  static bool native(const Context&, const PagedAttention&);
};

/// Numbers of coded pages, to (pages K P, E). For checks: portable.
template <class T>
struct PagedNumbers {
  static constexpr Traits traits{.name = "tern::paged_numbers"};
  CodedPages pages;
  Matrix<T> to;

  void check() const;
  double bytes() const { return bytes_of(pages.codes, to); }
  static void portable(const Context&, const PagedNumbers&);
};

/// Workspace elements for at most `splits` parts of single rows.
std::size_t paged_partials(std::size_t splits, std::size_t heads, std::size_t head_size);

}  // namespace tern::ops
