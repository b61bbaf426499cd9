/// MLP activations. Conventions: ops.hpp.
#pragma once
#include "base/activation.hpp"
#include "ops/elementwise/fp8_matrix.hpp"

namespace tern::ops {

using tern::Activation;  // base/activation.hpp
/// x (N, 2F) = [gate | up] for swiglu, else (N, F); y (N, F). `rounded`: y in fp8, or none.
template <class T>
void activation_forward(const Context&, Activation, Matrix<const T> x, Matrix<T> y,
                        const Fp8Matrix& rounded = {});
/// dx is shaped as x and may alias it. `rounded`: dx in fp8, or none.
template <class T>
void activation_backward(const Context&, Activation, Matrix<const T> x, Matrix<const T> dy,
                         Matrix<T> dx, const Fp8Matrix& rounded = {});

template <class T>
bool native_activation_forward(const Context& context, Activation kind, Matrix<const T> x,
                               Matrix<T> y, const Fp8Matrix& rounded);
template <>
inline constexpr auto native_kernel<&activation_forward<bf16>> =
    native_entry("tern::activation_forward", native_activation_forward<bf16>);
template <>
inline constexpr auto native_kernel<&activation_forward<fp16>> =
    native_entry("tern::activation_forward", native_activation_forward<fp16>);
template <>
struct Traffic<&activation_forward<bf16>> {
  double operator()(Activation, const auto& x, const auto& y, const Fp8Matrix& rounded) const {
    return bytes_of(x) + result_bytes(y, rounded);
  }
};
template <>
struct Traffic<&activation_forward<fp16>> : Traffic<&activation_forward<bf16>> {};
template <class T>
bool native_activation_backward(const Context& context, Activation kind, Matrix<const T> x,
                                Matrix<const T> dy, Matrix<T> dx, const Fp8Matrix& rounded);
template <>
inline constexpr auto native_kernel<&activation_backward<bf16>> =
    native_entry("tern::activation_backward", native_activation_backward<bf16>);
template <>
inline constexpr auto native_kernel<&activation_backward<fp16>> =
    native_entry("tern::activation_backward", native_activation_backward<fp16>);
template <>
struct Traffic<&activation_backward<bf16>> {
  double operator()(Activation, const auto& x, const auto& dy, const auto& dx,
                    const Fp8Matrix& rounded) const {
    return bytes_of(x) + bytes_of(dy) + result_bytes(dx, rounded);
  }
};
template <>
struct Traffic<&activation_backward<fp16>> : Traffic<&activation_backward<bf16>> {};
}  // namespace tern::ops
