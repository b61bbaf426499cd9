/// Skinny GEMM with the activation of its sums.
#include "ops/linear/linear_inference.hpp"

#include "ops/core/cuda/kernels.hpp"
#include "ops/linear/cuda/detail/products.hpp"

namespace tern::ops {
using namespace cuda;

template <class T>
bool LinearActivationInference<T>::native(const Context& context,
                                          const LinearActivationInference& call) {
  if (call.y.size() == 0) return true;
  return call.bias.size() == 0 &&
         skinny_gemm(*context.library)
             .multiply<T>(detail::stream_of(context), {.x = call.x,
                                                       .w = call.w,
                                                       .coded_x = call.inputs,
                                                       .coded_w = call.weights,
                                                       .y = call.y,
                                                       .early = context.constant_weights,
                                                       .activation = call.activation});
}

TERN_INSTANTIATE_NATIVE(LinearActivationInference)

}  // namespace tern::ops
