#include "ops/linear/linear_inference.hpp"

#include "ops/activation/activation.hpp"

namespace tern::ops {

template <class T>
void LinearActivationInference<T>::portable(const Context& context,
                                            const LinearActivationInference& call) {
  if (!call.weights.wanted())
    return run(context, LinearActivationForward<T>{.activation = call.activation,
                                                   .x = call.x,
                                                   .w = call.w,
                                                   .bias = call.bias,
                                                   .up = call.up,
                                                   .y = call.y});
  run(context, Fp8WeightForward<T>{.x = call.x,
                                   .w = call.w,
                                   .rounded = call.weights,
                                   .bias = call.bias,
                                   .y = call.up,
                                   .coded = call.inputs});
  run(context, ActivationForward<T>{.kind = call.activation, .x = call.up, .y = call.y});
}

TERN_INSTANTIATE_PORTABLE(LinearActivationInference)

}  // namespace tern::ops
