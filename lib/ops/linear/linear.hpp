/// Linear maps, y = x w^T + bias, and batched products of equal shapes. Conventions: ops.hpp.
#pragma once
#include "base/activation.hpp"
#include "ops/core/operation.hpp"

namespace tern::ops {

/// y (N, O) = added + x w^T + bias: x (N, I), w (O, I) as in torch.nn.Linear, bias (O) or empty,
/// added (N, O), e.g. the residual stream, or empty; it may be y.
template <class T>
struct LinearForward {
  static constexpr Traits traits{.name = "tern::linear_forward", .native = is_half<T>};
  Matrix<const T> x, w;
  Vector<const T> bias = {};
  Matrix<T> y;
  Matrix<const T> added = {};

  void check() const;
  double flops() const { return product_flops(y.size(), x.extent(1)); }
  double bytes() const { return bytes_of(x, w, bias, y, added); }
  static void portable(const Context&, const LinearForward&);
  static bool native(const Context&, const LinearForward&);
};

/// dx (N, I) = dy (N, O) w (O, I).
template <class T>
struct LinearBackwardInput {
  static constexpr Traits traits{.name = "tern::linear_backward_input", .native = is_half<T>};
  Matrix<const T> dy, w;
  Matrix<T> dx;
  Write write = Write::overwrite;

  void check() const;
  double flops() const { return product_flops(dx.size(), dy.extent(1)); }
  double bytes() const { return bytes_of(dy, w, dx); }
  static void portable(const Context&, const LinearBackwardInput&);
  static bool native(const Context&, const LinearBackwardInput&);
};

/// dw (O, I) = or += dy^T x; dbias (O) += column sums of dy, unless empty.
template <class T>
struct LinearBackwardWeight {
  static constexpr Traits traits{.name = "tern::linear_backward_weight", .native = is_half<T>};
  Matrix<const T> dy, x;
  Matrix<Accumulate<T>> dw;
  Vector<Accumulate<T>> dbias = {};
  Write write = Write::add;

  void check() const;
  double flops() const { return product_flops(dw.size(), dy.extent(0)); }
  double bytes() const { return bytes_of(dy, x, dw, dbias); }
  static void portable(const Context&, const LinearBackwardWeight&);
  static bool native(const Context&, const LinearBackwardWeight&);
};

/// up (N, F), or (N, 2F) for swiglu, = x w^T + bias, and y (N, F) = activation(up). On a GPU the
/// activation may take the sums before they are rounded to `up`.
template <class T>
struct LinearActivationForward {
  static constexpr Traits traits{.name = "tern::linear_activation_forward", .native = is_half<T>};
  Activation activation;
  Matrix<const T> x, w;
  Vector<const T> bias = {};
  Matrix<T> up, y;

  void check() const;
  double flops() const { return product_flops(up.size(), x.extent(1)); }
  double bytes() const { return bytes_of(x, w, bias, up, y); }
  static void portable(const Context&, const LinearActivationForward&);
  static bool native(const Context&, const LinearActivationForward&);
};

/// dup, the gradient of `up`, shaped as it, from dy (N, O), the gradient of y w^T, w (O, F); it may
/// be `up` or, unless swiglu, dactivated (N, F), a workspace. Fastest if it is not `up`.
template <class T>
struct LinearActivationBackward {
  static constexpr Traits traits{.name = "tern::linear_activation_backward", .native = is_half<T>};
  Activation activation;
  Matrix<const T> dy, w, up;
  Matrix<T> dactivated, dup;

  void check() const;
  double flops() const { return product_flops(dactivated.size(), dy.extent(1)); }
  double bytes() const { return bytes_of(dy, w, up, dactivated, dup); }
  static void portable(const Context&, const LinearActivationBackward&);
  static bool native(const Context&, const LinearActivationBackward&);
};

/// sums (D) += column sums of x (N, D).
template <class T>
struct ColumnSums {
  static constexpr Traits traits{.name = "tern::column_sums", .native = is_half<T>};
  Matrix<const T> x;
  Vector<Accumulate<T>> sums;

  void check() const;
  double bytes() const { return bytes_of(x, sums); }
  static void portable(const Context&, const ColumnSums&);
  static bool native(const Context&, const ColumnSums&);
};

/// Operand of a batched product, optionally transposed.
template <class T>
struct Factor {
  Tensor3<const T> matrices;
  bool transposed = false;

  std::size_t rows() const { return matrices.extent(transposed ? 2 : 1); }
  std::size_t columns() const { return matrices.extent(transposed ? 1 : 2); }
};

/// d (M, R, C) = alpha a b + beta c for each of M matrices. c (M, R, C), not read if beta is 0. d
/// aliases no operand. A matrix's result does not depend on the rest of the batch, except in the
/// native kernel, whose algorithm is chosen by the batch's shape.
template <class T>
struct BatchedProduct {
  static constexpr Traits traits{.name = "tern::batched_product", .native = is_half<T>};
  double alpha;
  Factor<T> a;
  Factor<T> b;
  double beta;
  Tensor3<const T> c;
  Tensor3<T> d;

  void check() const;
  double flops() const { return product_flops(d.size(), a.columns()); }
  double bytes() const { return bytes_of(a.matrices, b.matrices, c, d); }
  static void portable(const Context&, const BatchedProduct&);
  static bool native(const Context&, const BatchedProduct&);
};

}  // namespace tern::ops
