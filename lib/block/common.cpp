#include "block/common.hpp"

namespace tern::model {

template <class T>
Operand<T> rows_of(const Operand<T>& all, Range rows) {
  Operand<T> some{tern::rows_of(all.values, rows), all.rounded, all.coded.rows(rows)};
  some.rounded.straight = tern::rows_of(all.rounded.straight, rows);
  some.rounded.transposed = {};
  return some;
}

template <class T>
void Common<T>::multiply(const ops::Context& context, const Linear<T>& map, const Operand<T>& x,
                         Matrix<T> y, Matrix<const T> added) const {
  if (map.coded.wanted())
    return ops::fp8_weight_forward<T>(context, x.values, map.weight, map.coded, map.bias, y, added,
                                      x.coded);
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
    return ops::linear_backward_weight<T>(context, dy.values, x.values, map.dweight, map.dbias,
                                          weight_gradients);
  ops::fp8_linear_backward_weight<T>(context, fp8, dy.rounded, x.rounded, map.dweight,
                                     weight_gradients);
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
                                         const Operand<T>& dy, const Operand<T>& x, Matrix<T> dx,
                                         const std::function<void()>& meanwhile) const {
  if (links.share().tensors == 1) {
    meanwhile();
    return multiply_backward(context, map, dy, x, dx);
  }
  for (const auto& piece : sums.pieces(dx.extent(0))) {
    const Matrix<T> part = tern::rows_of(dx, piece.rows);
    input_gradient(context, map, rows_of(dy, piece.rows), part);
    sums.begin(context, {{}, part, part}, piece);
  }
  weight_gradient(context, map, dy, x);
  meanwhile();
}

template <class T>
Operand<T> branch_gradient(const ops::Context& context, const Common<T>& common,
                           const Linear<T>& map, Matrix<T> dstream, bool known,
                           const ops::DropoutKey& dropout) {
  const bool drops = dropout.probability > 0, made = known && common.drops_ahead;
  const Matrix<T> branch = drops ? common.branch_rows({0, dstream.extent(0)}) : dstream;
  if (drops && !made) ops::dropout<T>(context, dropout, dstream, {}, branch);
  const Operand<T> result = common.gradient(map, branch, common.dstream);
  ops::round_operand<T>(context, result,
                        known && (!drops || made) ? ops::Scaling::known : ops::Scaling::current);
  return result;
}

template <class T>
void Residual<T>::add_map(const ops::Context& context, const Common<T>& common,
                          const Linear<T>& map, const Operand<T>& x) const {
  if (common.links.share().tensors == 1 || dropout.probability > 0)
    return add(context, common, [&](Matrix<const T> added, Matrix<T> result) {
      common.multiply(context, map, x, result, added);
    });
  if (to.extent(0) == 0) return;
  for (const Piece& piece : common.sums.pieces(to.extent(0)))
    begin(context, common, map, rows_of(x, piece.rows), piece);
  common.sums.end(context);
}

template <class T>
void Residual<T>::begin(const ops::Context& context, const Common<T>& common, const Linear<T>& map,
                        const Operand<T>& x, const Piece& piece) const {
  const Matrix<T> part = common.branch_rows(piece.rows);
  common.multiply(context, map, x, part);
  common.sums.begin(context, {tern::rows_of(from, piece.rows), part, tern::rows_of(to, piece.rows)},
                    piece);
}

#define INSTANTIATE(T)                                                                         \
  template struct Common<T>;                                                                   \
  template struct Residual<T>;                                                                 \
  template Operand<T> rows_of(const Operand<T>&, Range);                                       \
  template Operand<T> branch_gradient(const ops::Context&, const Common<T>&, const Linear<T>&, \
                                      Matrix<T>, bool, const ops::DropoutKey&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::model
