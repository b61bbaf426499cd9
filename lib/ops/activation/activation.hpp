/// MLP activations. Conventions: ops.hpp.
#pragma once
#include "base/activation.hpp"
#include "ops/elementwise/fp8_matrix.hpp"

namespace tern::ops {

using tern::Activation;  // base/activation.hpp
/// x (N, 2F) = [gate | up] for swiglu, else (N, F); y (N, F). `rounded`: y in fp8, or none.
template <class T>
struct ActivationForward {
  static constexpr Traits traits{.name = "tern::activation_forward", .native = is_half<T>};
  Activation kind;
  Matrix<const T> x;
  Matrix<T> y;
  Fp8Matrix rounded = {};

  void check() const;
  double bytes() const { return bytes_of(x) + result_bytes(y, rounded); }
  static void portable(const Context&, const ActivationForward&);
  static bool native(const Context&, const ActivationForward&);
};

/// dx is shaped as x and may alias it. `rounded`: dx in fp8, or none.
template <class T>
struct ActivationBackward {
  static constexpr Traits traits{.name = "tern::activation_backward", .native = is_half<T>};
  Activation kind;
  Matrix<const T> x, dy;
  Matrix<T> dx;
  Fp8Matrix rounded = {};

  void check() const;
  double bytes() const { return bytes_of(x, dy) + result_bytes(dx, rounded); }
  static void portable(const Context&, const ActivationBackward&);
  static bool native(const Context&, const ActivationBackward&);
};

}  // namespace tern::ops
