/// Weights of linear maps in E4M3 for decoding, which is bound by reading them: half the bytes of
/// bf16. Either only weights are rounded (weight-only quantization), or activations as well, each
/// token with a scale of its own (dynamic quantization). Sums are in float.
///
/// Rounded numbers are exact in T (fp8_rows.hpp), so a map takes them from where they are read
/// fastest: from the codes for few rows, from T for more of them, with the same result but for
/// rounding in sums.
#pragma once
#include "ops/elementwise/fp8_rows.hpp"
#include "ops/linear/linear.hpp"

namespace tern::ops {

/// Most rows for which the native kernel reads the codes.
constexpr std::size_t fp8_weight_rows = 128;

/// As linear_forward: y (N, O) = added + x (N, I) w (O, I)^T + bias (O). `w` and `rounded` are the
/// same numbers, from fp8_round_rows, and so are x and `coded`, unless that is none. The native
/// kernel reads the codes, without bias: on sm_90a for up to fp8_weight_rows rows, with y itself or
/// nothing added, and is then batch-invariant; in bf16 for more rows, if x has codes as well and O
/// is a multiple of 16. Everything else is linear_forward.
template <class T>
void fp8_weight_forward(const Context&, Matrix<const T> x, Matrix<const T> w,
                        const Fp8Rows& rounded, Vector<const T> bias, Matrix<T> y,
                        Matrix<const T> added = {}, const Fp8Rows& coded = {});

// For profiles: of an operand, which is read from its codes if it has any.
template <class View>
double bytes_of(const View& values, const Fp8Rows& coded) {
  return coded.wanted() ? bytes_of(coded.codes) : bytes_of(values);
}
template <class T>
bool native_fp8_weight_forward(const Context&, Matrix<const T> x, Matrix<const T> w,
                               const Fp8Rows& rounded, Vector<const T> bias, Matrix<T> y,
                               Matrix<const T> added, const Fp8Rows& coded);
template <>
inline constexpr auto native_kernel<&fp8_weight_forward<bf16>> =
    native_entry("tern::fp8_weight_forward", native_fp8_weight_forward<bf16>);
template <>
inline constexpr auto native_kernel<&fp8_weight_forward<fp16>> =
    native_entry("tern::fp8_weight_forward", native_fp8_weight_forward<fp16>);
template <>
struct Flops<&fp8_weight_forward<bf16>> {
  double operator()(const auto& x, const auto&, const Fp8Rows&, const auto&, const auto& y,
                    const auto&, const Fp8Rows&) const {
    return product_flops(y.size(), x.extent(1));
  }
};
template <>
struct Flops<&fp8_weight_forward<fp16>> : Flops<&fp8_weight_forward<bf16>> {};
template <>
struct Traffic<&fp8_weight_forward<bf16>> {
  double operator()(const auto& x, const auto&, const Fp8Rows& rounded, const auto&, const auto& y,
                    const auto& added, const Fp8Rows& coded) const {
    return bytes_of(x, coded) + bytes_of(rounded.codes) + bytes_of(y) + bytes_of(added);
  }
};
template <>
struct Traffic<&fp8_weight_forward<fp16>> : Traffic<&fp8_weight_forward<bf16>> {};

}  // namespace tern::ops
