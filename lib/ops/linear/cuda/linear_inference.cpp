/// Skinny GEMM with the activation of its sums.
#include "ops/linear/linear_inference.hpp"

#include "ops/core/cuda/kernels.hpp"
#include "ops/linear/cuda/detail/products.hpp"

namespace tern::ops {
using namespace cuda;

template <class T>
bool native_linear_activation_inference(const Context& context, Activation activation,
                                        Matrix<const T> x, Matrix<const T> w,
                                        const Fp8Rows& weights, Vector<const T> bias, Matrix<T>,
                                        Matrix<T> y, const Fp8Rows& inputs) {
  if (y.size() == 0) return true;
  return bias.size() == 0 &&
         skinny_gemm(*context.library)
             .multiply<T>(detail::stream_of(context), {.x = x,
                                                       .w = w,
                                                       .coded_x = inputs,
                                                       .coded_w = weights,
                                                       .y = y,
                                                       .early = context.constant_weights,
                                                       .activation = activation});
}

template decltype(native_linear_activation_inference<bf16>)
    native_linear_activation_inference<bf16>;
template decltype(native_linear_activation_inference<fp16>)
    native_linear_activation_inference<fp16>;

}  // namespace tern::ops
