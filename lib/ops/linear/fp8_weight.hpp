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

/// Bytes of an operand, which is read from its codes if it has any.
template <class View>
double operand_bytes(const View& values, const Fp8Rows& coded) {
  return coded.wanted() ? bytes_of(coded.codes) : bytes_of(values);
}

/// As linear_forward: y (N, O) = added + x (N, I) w (O, I)^T + bias (O). `w` and `rounded` are the
/// same numbers, from fp8_round_rows, and so are x and `coded`, unless that is none. The native
/// kernel reads the codes, without bias: on sm_90a for up to fp8_weight_rows rows, with y itself or
/// nothing added, and is then batch-invariant; in bf16 for more rows, if x has codes as well and O
/// is a multiple of 16. Everything else is linear_forward.
template <class T>
struct Fp8WeightForward {
  static constexpr Traits traits{.name = "tern::fp8_weight_forward", .native = is_half<T>};
  Matrix<const T> x, w;
  Fp8Rows rounded;
  Vector<const T> bias = {};
  Matrix<T> y;
  Matrix<const T> added = {};
  Fp8Rows coded = {};

  void check() const;
  double flops() const { return product_flops(y.size(), x.extent(1)); }
  double bytes() const { return operand_bytes(x, coded) + bytes_of(rounded.codes, y, added); }
  static void portable(const Context&, const Fp8WeightForward&);
  static bool native(const Context&, const Fp8WeightForward&);
};

}  // namespace tern::ops
