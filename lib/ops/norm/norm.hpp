/// RMSNorm and LayerNorm per row. Conventions: ops.hpp.
#pragma once
#include "ops/elementwise/elementwise.hpp"
#include "ops/elementwise/fp8_matrix.hpp"
#include "ops/elementwise/fp8_rows.hpp"

namespace tern::ops {

enum class Norm { rmsnorm, layernorm };  // Zhang & Sennrich 2019; Ba et al. 2016
/// y = normalized x * gain + bias.
template <class T>
struct NormForward {
  static constexpr Traits traits{.name = "tern::norm_forward", .native = is_half<T>};
  Norm kind;
  Matrix<const T> x;          // (N, D)
  Vector<const T> gain;       // (D)
  Vector<const T> bias = {};  // (D), empty for rmsnorm
  double eps;
  Matrix<T> y;                      // (N, D)
  Vector<Accumulate<T>> mean = {};  // (N), kept for backward; empty for rmsnorm
  Vector<Accumulate<T>> rstd;       // (N), kept for backward
  Fp8Matrix rounded = {};           // y in fp8, or none
  Fp8Rows coded = {};               // y, which is rounded to it, or none
  PendingSum<T> made = {};          // x, if it is yet to be made

  void check() const;
  double bytes() const { return bytes_of(x, made.a, made.b, made.c) + result_bytes(y, rounded); }
  static void portable(const Context&, const NormForward&);
  static bool native(const Context&, const NormForward&);
};

template <class T>
struct NormBackward {
  static constexpr Traits traits{.name = "tern::norm_backward", .native = is_half<T>};
  Norm kind;
  Matrix<const T> dy, x;                  // (N, D)
  Vector<const T> gain;                   // (D)
  Vector<const Accumulate<T>> mean = {};  // (N), from forward
  Vector<const Accumulate<T>> rstd;
  Matrix<T> dx;                      // (N, D), may be x
  Matrix<const T> residual = {};     // (N, D) added to dx, may be dx; or empty
  Vector<Accumulate<T>> dgain;       // (D), added to
  Vector<Accumulate<T>> dbias = {};  // (D), added to; empty for rmsnorm
  Vector<Accumulate<T>> partial;     // workspace, norm_partials(D) elements
  Magnitude magnitude = {};          // of dx, or of `dropped` if it is wanted; or empty
  Matrix<const T> dy_added = {};     // (N, D) added to dy, with rounding; or empty
  Matrix<T> dropped = {};            // (N, D) dropout of dx; or empty
  DropoutKey dropout = {};           // of `dropped`

  void check() const;
  double bytes() const { return bytes_of(dy, dy_added, x, residual, dx, dropped); }
  static void portable(const Context&, const NormBackward&);
  static bool native(const Context&, const NormBackward&);
};

/// Workspace elements of norm_backward and head_norm_backward for rows of `width`.
std::size_t norm_partials(std::size_t width);

}  // namespace tern::ops
