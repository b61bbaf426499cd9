/// RMSNorm of each head (Zhang & Sennrich 2019; the q/k norm of Qwen3), then rotary position
/// embedding, in one pass. Conventions: ops.hpp.
#pragma once
#include "ops/attention/attention.hpp"

namespace tern::ops {

/// y = rotated x / rms(x) * gain.
template <class T>
struct HeadNormForward {
  static constexpr Traits traits{.name = "tern::head_norm_forward", .native = is_half<T>};
  Heads<const T> x;      // (B, T, heads, E)
  Vector<const T> gain;  // (E)
  double eps;
  Matrix<const Accumulate<T>> table = {};  // of rotary(); empty: no rotation
  Positions positions = {};
  Heads<T> y;                       // (B, T, heads, E), may be x
  Vector<Accumulate<T>> rstd = {};  // (B*T*heads), kept for backward; or empty

  void check() const;
  double bytes() const { return bytes_of(x, y); }
  static void portable(const Context&, const HeadNormForward&);
  static bool native(const Context&, const HeadNormForward&);
};

template <class T>
struct HeadNormBackward {
  static constexpr Traits traits{.name = "tern::head_norm_backward", .native = is_half<T>};
  Heads<T> dx;                       // (B, T, heads, E): gradient of y, then that of x
  Heads<const T> x;                  // (B, T, heads, E), as in forward
  Vector<const T> gain;              // (E)
  Vector<const Accumulate<T>> rstd;  // (B*T*heads)
  Matrix<const Accumulate<T>> table = {};
  Positions positions = {};
  Vector<Accumulate<T>> dgain;    // (E), added to
  Vector<Accumulate<T>> partial;  // workspace, norm_partials(E) elements

  void check() const;
  double bytes() const { return 2 * bytes_of(dx) + bytes_of(x); }
  static void portable(const Context&, const HeadNormBackward&);
  static bool native(const Context&, const HeadNormBackward&);
};

}  // namespace tern::ops
