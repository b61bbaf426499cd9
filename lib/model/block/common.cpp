#include "model/block/common.hpp"

#include "memory/narrow.hpp"

namespace tern::model {
namespace {

/// Of an operand of forward, which reads no transposed numbers.
template <class T>
Operand<T> rows_of(const Operand<T>& all, Range rows) {
  Operand<T> some{tern::rows_of(all.values, rows), all.rounded};
  some.rounded.straight = tern::rows_of(all.rounded.straight, rows);
  some.rounded.transposed = {};
  return some;
}

}  // namespace

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
void Common<T>::weight_gradient(const ops::Context& context, const Linear<T>& map,
                                const Operand<T>& dy, const Operand<T>& x) const {
  if (!dy.rounded.wanted())
    return ops::linear_backward_weight<T>(context, dy.values, x.values, map.dweight, map.dbias);
  ops::fp8_linear_backward_weight<T>(context, fp8, dy.rounded, x.rounded, map.dweight);
  if (map.dbias.size() > 0) ops::column_sums<T>(context, dy.values, map.dbias);
}

template <class T>
void Common<T>::input_gradient(const ops::Context& context, const Linear<T>& map,
                               const Operand<T>& dy, Matrix<T> dx) const {
  if (!dy.rounded.wanted())
    return ops::linear_backward_input<T>(context, dy.values, map.weight, dx);
  const ops::Fp8Matrix weight =
      map.rounded.wanted() ? map.rounded : fp8.weights(context, map.weight, true);
  ops::fp8_linear_backward_input<T>(context, fp8, dy.rounded, weight, dx);
}

template <class T>
void Common<T>::multiply_backward(const ops::Context& context, const Linear<T>& map,
                                  const Operand<T>& dy, const Operand<T>& x, Matrix<T> dx) const {
  weight_gradient(context, map, dy, x);
  input_gradient(context, map, dy, dx);
}

template <class T>
void Common<T>::multiply_backward_summed(const ops::Context& context, const Linear<T>& map,
                                         const Operand<T>& dy, const Operand<T>& x,
                                         Matrix<T> dx) const {
  if (links.share().tensors == 1) return multiply_backward(context, map, dy, x, dx);
  const auto all = links.all_rows(dx.extent(0));
  input_gradient(context, map, dy, dx);
  links.begin_sum(context, dx, all);
  weight_gradient(context, map, dy, x);
  links.end_sum(context, {}, dx, dx, all);
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

template <class T>
void Residual<T>::add_map(const ops::Context& context, const Common<T>& common,
                          const Linear<T>& map, const Operand<T>& x) const {
  const detail::Links<T>& links = common.links;
  if (links.share().tensors == 1 || dropout.probability > 0)
    return add(context, common, [&](Matrix<const T> added, Matrix<T> result) {
      common.multiply(context, map, x, result, added);
    });
  if (to.extent(0) == 0) return;
  const Matrix<T> result(common.branch.data(), to.extent(0), to.extent(1));
  const auto pieces = links.pieces(to.extent(0));
  for (const auto& piece : pieces) {
    common.multiply(context, map, rows_of(x, piece.rows), tern::rows_of(result, piece.rows));
    links.begin_sum(context, result, piece);
  }
  for (const auto& piece : pieces) links.end_sum(context, from, result, to, piece);
}

#define INSTANTIATE(T)                                                                         \
  template struct Common<T>;                                                                   \
  template struct Residual<T>;                                                                 \
  template Operand<T> branch_gradient(const ops::Context&, const Common<T>&, const Linear<T>&, \
                                      Matrix<T>, bool, const ops::DropoutKey&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::model
