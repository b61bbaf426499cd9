/// Weights of linear maps in E4M3 for decoding, which is bound by reading them: half the bytes of
/// bf16. Only weights are rounded; activations stay in T, sums in float (weight-only quantization).
///
/// Each output's row has a scale, a power of two. So the numbers of a rounded weight are exact in
/// T, and a map takes them from where they are read fastest: from the codes for few rows, from the
/// weight in T for more of them, with the same result but for the order of sums.
#pragma once
#include "ops/linear.hpp"

namespace tern::ops {

/// Columns are coded in groups of 16, the last one padded with zeros, in the order in which a lane
/// of a tensor core reads them: lane p of four has columns 2p, 2p + 8, 2p + 1, 2p + 9 in turn.
constexpr std::size_t code_group = 16;
KOKKOS_INLINE_FUNCTION constexpr std::size_t code_place(std::size_t column) {
  const std::size_t within = column % code_group;
  return column - within + within % 8 / 2 * 4 + within % 2 * 2 + within / 8;
}

/// A weight (O, I) in E4M3 (base/fp8.hpp): its numbers are code times `undo` of the row.
struct Fp8Weight {
  Fp8Weight() = default;  // none
  Fp8Weight(Arena& arena, const std::string& label, std::size_t O, std::size_t I);

  Matrix<std::uint8_t> codes;  // (O, I in whole groups)
  Vector<float> undo;          // (O) powers of two; NaN for a row with a non-finite weight

  bool wanted() const { return undo.size() > 0; }
};

/// Most rows for which the CUDA twin reads the codes.
constexpr std::size_t fp8_weight_rows = 128;

/// Rounds w (O, I) in place, and to codes. A row's scale is the largest power of two that keeps it
/// in E4M3's range, but in fp16 at most 2^15, so that its subnormals hold the numbers. A row with a
/// non-finite weight becomes NaN. Rounded weights stay unchanged.
template <class T>
void fp8_round_weight(const Context&, Matrix<T> w, const Fp8Weight& to);

/// As linear_forward: y (N, O) = added + x (N, I) w (O, I)^T + bias (O). `w` and `rounded` are the
/// same numbers, from fp8_round_weight. The CUDA twin reads `rounded`, on sm_90a, for up to
/// fp8_weight_rows rows, without bias, and with y itself or nothing added; it is batch-invariant.
/// Everything else is linear_forward.
template <class T>
void fp8_weight_forward(const Context&, Matrix<const T> x, Matrix<const T> w,
                        const Fp8Weight& rounded, Vector<const T> bias, Matrix<T> y,
                        Matrix<const T> added = {});

template <class T>
bool native_fp8_weight_forward(const Context&, Matrix<const T> x, Matrix<const T> w,
                               const Fp8Weight& rounded, Vector<const T> bias, Matrix<T> y,
                               Matrix<const T> added);
template <>
inline constexpr auto twin<&fp8_weight_forward<bf16>> =
    native_twin("tern::fp8_weight_forward", native_fp8_weight_forward<bf16>);
template <>
inline constexpr auto twin<&fp8_weight_forward<fp16>> =
    native_twin("tern::fp8_weight_forward", native_fp8_weight_forward<fp16>);
template <>
struct Flops<&fp8_weight_forward<bf16>> {
  double operator()(const auto& x, const auto&, const Fp8Weight&, const auto&, const auto& y,
                    const auto&) const {
    return product_flops(y.size(), x.extent(1));
  }
};
template <>
struct Flops<&fp8_weight_forward<fp16>> : Flops<&fp8_weight_forward<bf16>> {};
template <>
struct Traffic<&fp8_weight_forward<bf16>> {
  double operator()(const auto& x, const auto&, const Fp8Weight& rounded, const auto&,
                    const auto& y, const auto& added) const {
    return bytes_of(x) + bytes_of(rounded.codes) + bytes_of(y) + bytes_of(added);
  }
};
template <>
struct Traffic<&fp8_weight_forward<fp16>> : Traffic<&fp8_weight_forward<bf16>> {};

}  // namespace tern::ops
