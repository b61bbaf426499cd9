/// Matrices in E4M3 (base/fp8.hpp) with a scale per row, as products of few rows read them: weights,
/// whose rows are outputs, and activations, whose rows are tokens.
///
/// A scale is a power of two, so the rounded numbers are exact in T.
#pragma once
#include "base/range.hpp"
#include "ops/core/operation.hpp"

namespace tern::ops {

/// Columns are coded in groups of 16, the last one padded with zeros, in the order in which a lane
/// of a tensor core reads them: lane p of four has columns 2p, 2p + 8, 2p + 1, 2p + 9 in turn.
constexpr std::size_t code_group = 16;
KOKKOS_INLINE_FUNCTION constexpr std::size_t code_place(std::size_t column) {
  const std::size_t within = column % code_group;
  return column - within + within % 8 / 2 * 4 + within % 2 * 2 + within / 8;
}
/// Codes of a row of `columns` numbers.
constexpr std::size_t code_width(std::size_t columns) {
  return (columns + code_group - 1) / code_group * code_group;
}

/// A matrix (N, I): its numbers are code times `undo` of the row.
struct Fp8Rows {
  Fp8Rows() = default;  // none
  Fp8Rows(Arena& arena, const std::string& label, Term term, std::size_t N, std::size_t I);

  Matrix<std::uint8_t> codes;  // (N, code_width(I))
  Vector<float> undo;          // (N) powers of two; NaN for a row with a non-finite number

  bool wanted() const { return undo.size() > 0; }
  /// A matrix (N, I) in this memory, which suffices for it.
  Fp8Rows shaped(std::size_t N, std::size_t I) const;
  Fp8Rows rows(Range range) const;
};

/// Rounds x (N, I) in place, and to codes. A row's scale is the largest power of two that keeps it
/// in E4M3's range, but in fp16 at most 2^15, so that its subnormals hold the numbers. A row with a
/// non-finite number becomes NaN. Rounded rows stay unchanged.
template <class T>
struct Fp8RoundRows {
  static constexpr Traits traits{.name = "tern::fp8_round_rows", .native = is_half<T>};
  Matrix<T> x;
  Fp8Rows to;

  void check() const;
  double bytes() const { return 2 * bytes_of(x) + bytes_of(to.codes); }
  static void portable(const Context&, const Fp8RoundRows&);
  static bool native(const Context&, const Fp8RoundRows&);
};

}  // namespace tern::ops
