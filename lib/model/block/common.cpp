#include "model/block/common.hpp"

namespace tern::model {

template <class T>
void Common<T>::multiply(const ops::Context& context, const Linear<T>& map, const Operand<T>& x,
                         Matrix<T> y, ops::Write write) const {
  if (in_fp8) return ops::fp8_linear_forward<T>(context, fp8, x, map.weight, map.bias, y, write);
  ops::linear_forward<T>(context, x.values, map.weight, map.bias, y, write);
}

template <class T>
void Common<T>::multiply_add(const ops::Context& context, const Linear<T>& map, const Operand<T>& x,
                             Matrix<const T> added, Matrix<T> to) const {
  if (added.extent(0) == 0) return multiply(context, map, x, to);
  if (added.data() != to.data()) Kokkos::deep_copy(context.space, to, added);
  multiply(context, map, x, to, ops::Write::add);
}

template <class T>
void Common<T>::multiply_backward(const ops::Context& context, const Linear<T>& map,
                                  const Operand<T>& dy, const Operand<T>& x, Matrix<T> dx) const {
  if (in_fp8)
    return ops::fp8_linear_backward<T>(context, {.work = fp8,
                                                 .dy = dy,
                                                 .x = x,
                                                 .w = map.weight,
                                                 .dx = dx,
                                                 .dw = map.dweight,
                                                 .dbias = map.dbias});
  ops::linear_backward_weight<T>(context, dy.values, x.values, map.dweight, map.dbias);
  ops::linear_backward_input<T>(context, dy.values, map.weight, dx);
}

template <class T>
Operand<T> branch_gradient(const ops::Context& context, const Common<T>& common,
                           const Operand<T>& dstream, const ops::DropoutKey& dropout) {
  if (dropout.probability == 0) return dstream;
  Kokkos::deep_copy(context.space, common.branch, dstream.values);
  ops::dropout<T>(context, dropout, common.branch);
  return common.branch;
}

#define INSTANTIATE(T)                                                                          \
  template struct Common<T>;                                                                    \
  template Operand<T> branch_gradient(const ops::Context&, const Common<T>&, const Operand<T>&, \
                                      const ops::DropoutKey&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::model
