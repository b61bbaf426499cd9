/// Operations of the generation engine on a paged cache, for rows of sequences of different
/// lengths. Conventions: ops.hpp. Batch-invariant in every precision.
///
/// Further legend: P tokens per page; S segments per pass, each a run of rows that are consecutive
/// tokens of one sequence.
#pragma once
#include <limits>

#include "ops/core/native.hpp"
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

// For profiles: only the device knows what is read of the cache.
inline double bytes_of(const PagedRows&) { return std::numeric_limits<double>::quiet_NaN(); }

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
void paged_store(const Context&, const PagedRows&, Matrix<T> qkv, std::size_t heads,
                 const HeadStage<T>&, const PagedCache<T>& cache);

/// out (N, H E) = attention of q, the first H E columns of qkv, over the stored keys and values,
/// H a multiple of K (grouped queries). partial: workspace, paged_partials() elements. With `coded`,
/// out is rounded as by fp8_round_rows.
template <class T>
void paged_attention(const Context&, const PagedRows&, double scale, Matrix<const T> qkv,
                     const PagedCache<T>& cache, Vector<Accumulate<T>> partial, Matrix<T> out,
                     const Fp8Rows& coded = {});
/// Numbers of coded pages, to (pages K P, E). For checks: portable.
template <class T>
void paged_numbers(const Context&, const CodedPages& pages, Matrix<T> to);
/// Workspace elements for at most `splits` parts of single rows.
std::size_t paged_partials(std::size_t splits, std::size_t heads, std::size_t head_size);

template <class T>
bool native_paged_store(const Context& context, const PagedRows& rows, Matrix<T> qkv,
                        std::size_t heads, const HeadStage<T>& stage, const PagedCache<T>& cache);
template <>
inline constexpr auto native_kernel<&paged_store<bf16>> = native_entry("tern::paged_store",
                                                                       native_paged_store<bf16>);
template <>
inline constexpr auto native_kernel<&paged_store<fp16>> = native_entry("tern::paged_store",
                                                                       native_paged_store<fp16>);
template <class T>
bool native_paged_attention(const Context& context, const PagedRows& rows, double scale,
                            Matrix<const T> qkv, const PagedCache<T>& cache, Vector<float> partial,
                            Matrix<T> out, const Fp8Rows& coded);
template <>
inline constexpr auto native_kernel<&paged_attention<bf16>> =
    native_entry("tern::paged_attention", native_paged_attention<bf16>);
template <>
inline constexpr auto native_kernel<&paged_attention<fp16>> =
    native_entry("tern::paged_attention", native_paged_attention<fp16>);

}  // namespace tern::ops
