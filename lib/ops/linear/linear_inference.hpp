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
struct LinearActivationInference {
  static constexpr Traits traits{.name = "tern::linear_activation_inference", .native = is_half<T>};
  Activation activation;
  Matrix<const T> x, w;
  Fp8Rows weights;
  Vector<const T> bias = {};
  Matrix<T> up, y;
  Fp8Rows inputs = {};

  double flops() const { return product_flops(up.size(), x.extent(1)); }
  double bytes() const {
    return operand_bytes(x, inputs) + operand_bytes(w, weights) + bytes_of(y);
  }
  static void portable(const Context&, const LinearActivationInference&);
  static bool native(const Context&, const LinearActivationInference&);
};

}  // namespace tern::ops
