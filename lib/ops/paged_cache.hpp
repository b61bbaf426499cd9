/// Operations of the generation engine, for rows of several sequences of different lengths whose
/// keys and values lie in pages. Conventions are those of ops.hpp. What a row gives does not depend
/// on the rows beside it, in any precision.
///
/// Legend beside that of ops.hpp: P tokens of a page; S segments of a pass, each a run of
/// neighbouring rows that are neighbouring tokens of one sequence.
#pragma once
#include "ops/native.hpp"

namespace tern::ops {

/// Keys and values of a layer, (pages, K, P E) each: token t of a page and head k at t E.
template <class T>
struct PagedCache {
  Tensor3<T> keys, values;
  std::size_t page_tokens;  // P, a power of two
};

struct Segment {
  std::int32_t row, rows;  // the first of the pass's, and how many
  std::int32_t position;   // of the first row in its sequence
  std::int32_t table;      // where its pages begin in the tables
};
/// A part of a segment's work; what it is a part of, says its list.
struct Piece {
  std::int32_t segment, part;
};

/// The rows of a pass, N of them: first those of segments of one row (decoding), then the others. A
/// row sees the tokens of its sequence up to its own position.
struct PagedRows {
  std::size_t singles;                   // segments of one row: the first ones
  Vector<const Segment> segments;        // (S)
  Vector<const std::int32_t> tables;     // pages in the order of their tokens, by segment
  Vector<const std::int32_t> positions;  // (N)
  Vector<const std::int32_t> table_of;   // (N) where the row's pages begin in the tables
  Vector<const std::int32_t> places;     // (N) where the row is stored: page P + token of it
  /// The keys of one row, by split_keys; by segment and rising.
  Vector<const Piece> splits;
  /// The rows of the other segments by positions: part p holds positions [tile_rows p, ...).
  Vector<const Piece> tiles;

  static constexpr int split_keys = 256, tile_rows = 64;
};

/// What q and k are given between their product and attention.
template <class T>
struct HeadStage {
  Vector<const T> q_gain, k_gain;     // (E) of RMSNorm of each head's vector; empty: no norm
  double eps;                         // of the norm
  Matrix<const Accumulate<T>> table;  // (positions, E) of rotation; empty: no rotation
};

/// Norms q and k of qkv (N, (H + 2K) E), rotates them to the rows' positions, and stores k and v at
/// the rows' places.
template <class T>
void paged_store(const Context&, const PagedRows&, Matrix<T> qkv, std::size_t heads,
                 const HeadStage<T>&, const PagedCache<T>& cache);

/// out (N, H E) = attention of q, the first H E columns of qkv, over the stored keys and values,
/// H a multiple of K (grouped queries). partial: workspace of paged_partials() numbers.
template <class T>
void paged_attention(const Context&, const PagedRows&, double scale, Matrix<const T> qkv,
                     const PagedCache<T>& cache, Vector<Accumulate<T>> partial, Matrix<T> out);
/// For at most `splits` pieces of single rows.
std::size_t paged_partials(std::size_t splits, std::size_t heads, std::size_t head_size);

Twin<&paged_store<bf16>> native_paged_store;
template <>
inline constexpr auto twin<&paged_store<bf16>> = in_cuda("tern::paged_store", native_paged_store);
Twin<&paged_attention<bf16>> native_paged_attention;
template <>
inline constexpr auto twin<&paged_attention<bf16>> = in_cuda("tern::paged_attention",
                                                             native_paged_attention);

}  // namespace tern::ops
