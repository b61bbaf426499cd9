#include "ops/linear/linear_inference.hpp"

#include "ops/activation/activation.hpp"

namespace tern::ops {

template <class T>
void linear_activation_inference(const Context& context, Activation activation, Matrix<const T> x,
                                 Matrix<const T> w, const Fp8Rows& weights, Vector<const T> bias,
                                 Matrix<T> up, Matrix<T> y, const Fp8Rows& inputs) {
  if (native<&linear_activation_inference<T>>(context, activation, x, w, weights, bias, up, y,
                                              inputs))
    return;
  if (!weights.wanted())
    return linear_activation_forward<T>(context, activation, x, w, bias, up, y);
  fp8_weight_forward<T>(context, x, w, weights, bias, up, {}, inputs);
  activation_forward<T>(context, activation, up, y);
}

#define INSTANTIATE(T) \
  template decltype(linear_activation_inference<T>) linear_activation_inference<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
