/// RMSNorm of each head (Zhang & Sennrich 2019; the q/k norm of Qwen3), then rotary position
/// embedding, in one pass. Conventions: ops.hpp.
#pragma once
#include "ops/attention/attention.hpp"

namespace tern::ops {

template <class T>
struct HeadNormForward {
  Heads<const T> x;      // (B, T, heads, E)
  Vector<const T> gain;  // (E)
  double eps;
  Matrix<const Accumulate<T>> table = {};  // of rotary(); empty: no rotation
  Positions positions = {};
  Heads<T> y;                       // (B, T, heads, E), may be x
  Vector<Accumulate<T>> rstd = {};  // (B*T*heads), kept for backward; or empty
};
/// y = rotated x / rms(x) * gain.
template <class T>
void head_norm_forward(const Context&, const HeadNormForward<T>&);

template <class T>
struct HeadNormBackward {
  Heads<T> dx;                       // (B, T, heads, E): gradient of y, then that of x
  Heads<const T> x;                  // (B, T, heads, E), as in forward
  Vector<const T> gain;              // (E)
  Vector<const Accumulate<T>> rstd;  // (B*T*heads)
  Matrix<const Accumulate<T>> table = {};
  Positions positions = {};
  Vector<Accumulate<T>> dgain;    // (E), added to
  Vector<Accumulate<T>> partial;  // workspace, norm_partials(E) elements
};
template <class T>
void head_norm_backward(const Context&, const HeadNormBackward<T>&);

// For profiles.
template <class T>
double bytes_of(const HeadNormForward<T>& c) {
  return bytes_of(c.x) + bytes_of(c.y);
}
template <class T>
double bytes_of(const HeadNormBackward<T>& c) {
  return 2 * bytes_of(c.dx) + bytes_of(c.x);
}

template <class T>
bool native_head_norm_forward(const Context& context, const HeadNormForward<T>& call);
template <>
inline constexpr auto native_kernel<&head_norm_forward<bf16>> =
    native_entry("tern::head_norm_forward", native_head_norm_forward<bf16>);
template <>
inline constexpr auto native_kernel<&head_norm_forward<fp16>> =
    native_entry("tern::head_norm_forward", native_head_norm_forward<fp16>);
template <class T>
bool native_head_norm_backward(const Context& context, const HeadNormBackward<T>& call);
template <>
inline constexpr auto native_kernel<&head_norm_backward<bf16>> =
    native_entry("tern::head_norm_backward", native_head_norm_backward<bf16>);
template <>
inline constexpr auto native_kernel<&head_norm_backward<fp16>> =
    native_entry("tern::head_norm_backward", native_head_norm_backward<fp16>);

}  // namespace tern::ops
