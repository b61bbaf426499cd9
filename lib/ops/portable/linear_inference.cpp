#include "ops/linear_inference.hpp"

#include "ops/activation.hpp"

namespace tern::ops {

template <class T>
void linear_activation_inference(const Context& context, Activation activation, Matrix<const T> x,
                                 Matrix<const T> w, const Fp8Weight& coded, Vector<const T> bias,
                                 Matrix<T> up, Matrix<T> y) {
  if (native<&linear_activation_inference<T>>(context, activation, x, w, coded, bias, up, y))
    return;
  if (!coded.wanted()) return linear_activation_forward<T>(context, activation, x, w, bias, up, y);
  fp8_weight_forward<T>(context, x, w, coded, bias, up);
  activation_forward<T>(context, activation, up, y);
}

#define INSTANTIATE(T)                                                                          \
  template void linear_activation_inference(const Context&, Activation, Matrix<const T>,        \
                                            Matrix<const T>, const Fp8Weight&, Vector<const T>, \
                                            Matrix<T>, Matrix<T>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
