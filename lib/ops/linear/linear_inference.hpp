/// A linear map with its activation in passes that no backward pass follows. Conventions: ops.hpp.
#pragma once
#include "ops/activation/activation.hpp"
#include "ops/linear/fp8_weight.hpp"

namespace tern::ops {

/// y (N, F) = activation(x w^T + bias): as linear_activation_forward, but `up` is a workspace.
/// `weights` and `inputs`: the numbers of w and x in E4M3, or none, as in fp8_weight_forward. The
/// native version is one kernel for up to fp8_weight_rows rows without bias, on sm_90a, which applies
/// the activation to the sums before they are rounded; it is batch-invariant.
template <class T>
void linear_activation_inference(const Context&, Activation, Matrix<const T> x, Matrix<const T> w,
                                 const Fp8Rows& weights, Vector<const T> bias, Matrix<T> up,
                                 Matrix<T> y, const Fp8Rows& inputs = {});

template <class T>
bool native_linear_activation_inference(const Context& context, Activation activation,
                                        Matrix<const T> x, Matrix<const T> w,
                                        const Fp8Rows& weights, Vector<const T> bias, Matrix<T> up,
                                        Matrix<T> y, const Fp8Rows& inputs);
template <>
inline constexpr auto native_kernel<&linear_activation_inference<bf16>> =
    native_entry("tern::linear_activation_inference", native_linear_activation_inference<bf16>);
template <>
inline constexpr auto native_kernel<&linear_activation_inference<fp16>> =
    native_entry("tern::linear_activation_inference", native_linear_activation_inference<fp16>);
template <>
struct Flops<&linear_activation_inference<bf16>> {
  double operator()(Activation, const auto& x, const auto&, const auto&, const auto&,
                    const auto& up, const auto&, const Fp8Rows&) const {
    return product_flops(up.size(), x.extent(1));
  }
};
template <>
struct Flops<&linear_activation_inference<fp16>> : Flops<&linear_activation_inference<bf16>> {};
template <>
struct Traffic<&linear_activation_inference<bf16>> {
  double operator()(Activation, const auto& x, const auto& w, const Fp8Rows& weights, const auto&,
                    const auto&, const auto& y, const Fp8Rows& inputs) const {
    return bytes_of(x, inputs) + bytes_of(w, weights) + bytes_of(y);
  }
};
template <>
struct Traffic<&linear_activation_inference<fp16>> : Traffic<&linear_activation_inference<bf16>> {};

}  // namespace tern::ops
