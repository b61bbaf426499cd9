/// RMSNorm and LayerNorm per row. Conventions: ops.hpp.
#pragma once
#include "ops/elementwise/elementwise.hpp"
#include "ops/elementwise/fp8_matrix.hpp"
#include "ops/elementwise/fp8_rows.hpp"

namespace tern::ops {

enum class Norm { rmsnorm, layernorm };  // Zhang & Sennrich 2019; Ba et al. 2016
template <class T>
struct NormForward {
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
};
/// y = normalized x * gain + bias.
template <class T>
void norm_forward(const Context&, const NormForward<T>&);

template <class T>
struct NormBackward {
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
};
template <class T>
void norm_backward(const Context&, const NormBackward<T>&);
// For profiles.
template <class T>
double bytes_of(const NormForward<T>& c) {
  const double made = bytes_of(c.made.a) + bytes_of(c.made.b) + bytes_of(c.made.c);
  return bytes_of(c.x) + made + result_bytes(c.y, c.rounded);
}
template <class T>
double bytes_of(const NormBackward<T>& c) {
  return bytes_of(c.dy) + bytes_of(c.dy_added) + bytes_of(c.x) + bytes_of(c.residual) +
         bytes_of(c.dx) + bytes_of(c.dropped);
}
/// Workspace elements of norm_backward and head_norm_backward for rows of `width`.
std::size_t norm_partials(std::size_t width);

template <class T>
bool native_norm_forward(const Context& context, const NormForward<T>& call);
template <>
inline constexpr auto native_kernel<&norm_forward<bf16>> = native_entry("tern::norm_forward",
                                                                        native_norm_forward<bf16>);
template <>
inline constexpr auto native_kernel<&norm_forward<fp16>> = native_entry("tern::norm_forward",
                                                                        native_norm_forward<fp16>);
template <class T>
bool native_norm_backward(const Context& context, const NormBackward<T>& call);
template <>
inline constexpr auto native_kernel<&norm_backward<bf16>> =
    native_entry("tern::norm_backward", native_norm_backward<bf16>);
template <>
inline constexpr auto native_kernel<&norm_backward<fp16>> =
    native_entry("tern::norm_backward", native_norm_backward<fp16>);

}  // namespace tern::ops
