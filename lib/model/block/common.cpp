#include "model/block/common.hpp"

namespace tern::model {

template <class T>
void Common<T>::multiply(const ops::Context& context, const Linear<T>& map, const Operand<T>& x,
                         Matrix<T> y, Matrix<const T> added) const {
  if (map.coded.wanted())
    return ops::fp8_weight_forward<T>(context, x.values, map.weight, map.coded, map.bias, y, added);
  if (!x.rounded.wanted())
    return ops::linear_forward<T>(context, x.values, map.weight, map.bias, y, added);
  const ops::Fp8Matrix weight =
      map.rounded.wanted() ? map.rounded : fp8.weights(context, map.weight, false);
  ops::fp8_linear_forward<T>(context, fp8, x.rounded, weight, map.bias, y, added);
}

template <class T>
void Common<T>::multiply_backward(const ops::Context& context, const Linear<T>& map,
                                  const Operand<T>& dy, const Operand<T>& x, Matrix<T> dx) const {
  if (!dy.rounded.wanted()) {
    ops::linear_backward_weight<T>(context, dy.values, x.values, map.dweight, map.dbias);
    return ops::linear_backward_input<T>(context, dy.values, map.weight, dx);
  }
  ops::fp8_linear_backward_weight<T>(context, fp8, dy.rounded, x.rounded, map.dweight);
  if (map.dbias.size() > 0) ops::column_sums<T>(context, dy.values, map.dbias);
  const ops::Fp8Matrix weight =
      map.rounded.wanted() ? map.rounded : fp8.weights(context, map.weight, true);
  ops::fp8_linear_backward_input<T>(context, fp8, dy.rounded, weight, dx);
}

template <class T>
Operand<T> branch_gradient(const ops::Context& context, const Common<T>& common,
                           const Linear<T>& map, Matrix<T> dstream, bool known,
                           const ops::DropoutKey& dropout) {
  const bool changed = dropout.probability > 0;
  if (changed) ops::dropout<T>(context, dropout, dstream, {}, common.branch);
  const Operand<T> result = common.gradient(map, changed ? common.branch : dstream, common.dstream);
  ops::round_operand<T>(context, result,
                        known && !changed ? ops::Scaling::known : ops::Scaling::current);
  return result;
}

#define INSTANTIATE(T)                                                                         \
  template struct Common<T>;                                                                   \
  template Operand<T> branch_gradient(const ops::Context&, const Common<T>&, const Linear<T>&, \
                                      Matrix<T>, bool, const ops::DropoutKey&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::model
