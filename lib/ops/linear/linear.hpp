/// Linear maps, y = x w^T + bias, and batched products of equal shapes. Conventions: ops.hpp.
#pragma once
#include "base/activation.hpp"
#include "ops/core/native.hpp"

namespace tern::ops {

/// y (N, O) = added + x w^T + bias: x (N, I), w (O, I) as in torch.nn.Linear, bias (O) or empty,
/// added (N, O), e.g. the residual stream, or empty; it may be y.
template <class T>
void linear_forward(const Context&, Matrix<const T> x, Matrix<const T> w, Vector<const T> bias,
                    Matrix<T> y, Matrix<const T> added = {});
/// dx (N, I) = dy (N, O) w (O, I).
template <class T>
void linear_backward_input(const Context&, Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx,
                           Write = Write::overwrite);
/// dw (O, I) = or += dy^T x; dbias (O) += column sums of dy, unless empty.
template <class T>
void linear_backward_weight(const Context&, Matrix<const T> dy, Matrix<const T> x,
                            Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias,
                            Write = Write::add);
/// up (N, F), or (N, 2F) for swiglu, = x w^T + bias, and y (N, F) = activation(up). On a GPU the
/// activation may take the sums before they are rounded to `up`.
template <class T>
void linear_activation_forward(const Context&, Activation, Matrix<const T> x, Matrix<const T> w,
                               Vector<const T> bias, Matrix<T> up, Matrix<T> y);
/// dup, the gradient of `up`, shaped as it, from dy (N, O), the gradient of y w^T, w (O, F); it may
/// be `up` or, unless swiglu, dactivated (N, F), a workspace. Fastest if it is not `up`.
template <class T>
void linear_activation_backward(const Context&, Activation, Matrix<const T> dy, Matrix<const T> w,
                                Matrix<const T> up, Matrix<T> dactivated, Matrix<T> dup);
/// sums (D) += column sums of x (N, D).
template <class T>
void column_sums(const Context&, Matrix<const T> x, Vector<Accumulate<T>> sums);

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
void batched_product(const Context&, double alpha, Factor<T> a, Factor<T> b, double beta,
                     Tensor3<const T> c, Tensor3<T> d);

template <class T>
bool native_linear_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                           Vector<const T> bias, Matrix<T> y, Matrix<const T> added);
template <>
inline constexpr auto native_kernel<&linear_forward<bf16>> =
    native_entry("tern::linear_forward", native_linear_forward<bf16>);
template <>
inline constexpr auto native_kernel<&linear_forward<fp16>> =
    native_entry("tern::linear_forward", native_linear_forward<fp16>);
template <>
struct Flops<&linear_forward<bf16>> {
  double operator()(const auto& x, const auto&, const auto&, const auto& y, const auto&) const {
    return product_flops(y.size(), x.extent(1));
  }
};
template <>
struct Flops<&linear_forward<fp16>> : Flops<&linear_forward<bf16>> {};
template <class T>
bool native_linear_backward_input(const Context& context, Matrix<const T> dy, Matrix<const T> w,
                                  Matrix<T> dx, Write write);
template <>
inline constexpr auto native_kernel<&linear_backward_input<bf16>> =
    native_entry("tern::linear_backward_input", native_linear_backward_input<bf16>);
template <>
inline constexpr auto native_kernel<&linear_backward_input<fp16>> =
    native_entry("tern::linear_backward_input", native_linear_backward_input<fp16>);
template <>
struct Flops<&linear_backward_input<bf16>> {
  double operator()(const auto& dy, const auto&, const auto& dx, Write) const {
    return product_flops(dx.size(), dy.extent(1));
  }
};
template <>
struct Flops<&linear_backward_input<fp16>> : Flops<&linear_backward_input<bf16>> {};
template <class T>
bool native_linear_backward_weight(const Context& context, Matrix<const T> dy, Matrix<const T> x,
                                   Matrix<float> dw, Vector<float> dbias, Write write);
template <>
inline constexpr auto native_kernel<&linear_backward_weight<bf16>> =
    native_entry("tern::linear_backward_weight", native_linear_backward_weight<bf16>);
template <>
inline constexpr auto native_kernel<&linear_backward_weight<fp16>> =
    native_entry("tern::linear_backward_weight", native_linear_backward_weight<fp16>);
template <>
struct Flops<&linear_backward_weight<bf16>> {
  double operator()(const auto& dy, const auto&, const auto& dw, const auto&, Write) const {
    return product_flops(dw.size(), dy.extent(0));
  }
};
template <>
struct Flops<&linear_backward_weight<fp16>> : Flops<&linear_backward_weight<bf16>> {};
template <class T>
bool native_linear_activation_forward(const Context& context, Activation activation,
                                      Matrix<const T> x, Matrix<const T> w, Vector<const T> bias,
                                      Matrix<T> up, Matrix<T> y);
template <>
inline constexpr auto native_kernel<&linear_activation_forward<bf16>> =
    native_entry("tern::linear_activation_forward", native_linear_activation_forward<bf16>);
template <>
inline constexpr auto native_kernel<&linear_activation_forward<fp16>> =
    native_entry("tern::linear_activation_forward", native_linear_activation_forward<fp16>);
template <>
struct Flops<&linear_activation_forward<bf16>> {
  double operator()(Activation, const auto& x, const auto&, const auto&, const auto& up,
                    const auto&) const {
    return product_flops(up.size(), x.extent(1));
  }
};
template <>
struct Flops<&linear_activation_forward<fp16>> : Flops<&linear_activation_forward<bf16>> {};
template <class T>
bool native_linear_activation_backward(const Context& context, Activation activation,
                                       Matrix<const T> dy, Matrix<const T> w, Matrix<const T> up,
                                       Matrix<T> dactivated, Matrix<T> dup);
template <>
inline constexpr auto native_kernel<&linear_activation_backward<bf16>> =
    native_entry("tern::linear_activation_backward", native_linear_activation_backward<bf16>);
template <>
inline constexpr auto native_kernel<&linear_activation_backward<fp16>> =
    native_entry("tern::linear_activation_backward", native_linear_activation_backward<fp16>);
template <>
struct Flops<&linear_activation_backward<bf16>> {
  double operator()(Activation, const auto& dy, const auto&, const auto&, const auto& dactivated,
                    const auto&) const {
    return product_flops(dactivated.size(), dy.extent(1));
  }
};
template <>
struct Flops<&linear_activation_backward<fp16>> : Flops<&linear_activation_backward<bf16>> {};
template <class T>
bool native_column_sums(const Context& context, Matrix<const T> x, Vector<float> result);
template <>
inline constexpr auto native_kernel<&column_sums<bf16>> = native_entry("tern::column_sums",
                                                                       native_column_sums<bf16>);
template <>
inline constexpr auto native_kernel<&column_sums<fp16>> = native_entry("tern::column_sums",
                                                                       native_column_sums<fp16>);
template <class T>
bool native_batched_product(const Context& context, double alpha, Factor<T> a, Factor<T> b,
                            double beta, Tensor3<const T> c, Tensor3<T> d);
template <>
inline constexpr auto native_kernel<&batched_product<bf16>> =
    native_entry("tern::batched_product", native_batched_product<bf16>);
template <>
inline constexpr auto native_kernel<&batched_product<fp16>> =
    native_entry("tern::batched_product", native_batched_product<fp16>);
template <>
struct Flops<&batched_product<bf16>> {
  double operator()(double, const auto& a, const auto&, double, const auto&, const auto& d) const {
    return product_flops(d.size(), a.columns());
  }
};
template <>
struct Flops<&batched_product<fp16>> : Flops<&batched_product<bf16>> {};

}  // namespace tern::ops
