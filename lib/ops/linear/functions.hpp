/// The operations of this family as functions, each a call of run(). For callers that do not make the calls
/// themselves.
#pragma once
#include "ops/linear/fp8.hpp"
#include "ops/linear/fp8_weight.hpp"
#include "ops/linear/linear.hpp"
#include "ops/linear/linear_inference.hpp"

namespace tern::ops {

template <class T>
void fp8_linear_forward(const Context& context, const Fp8Workspace<T>& workspace,
                        const Fp8Matrix& x, const Fp8Matrix& w, Vector<const T> bias, Matrix<T> y,
                        Matrix<const T> added = {}) {
  run(context, Fp8LinearForward<T>{workspace.values(), x, w, bias, y, added});
}
template <class T>
void fp8_linear_backward_weight(const Context& context, const Fp8Workspace<T>& workspace,
                                const Fp8Matrix& dy, const Fp8Matrix& x, Matrix<Accumulate<T>> dw,
                                Write write = Write::add) {
  run(context, Fp8LinearBackwardWeight<T>{workspace.values(), dy, x, dw, write});
}
template <class T>
void fp8_linear_backward_input(const Context& context, const Fp8Workspace<T>& workspace,
                               const Fp8Matrix& dy, const Fp8Matrix& w, Matrix<T> dx) {
  run(context, Fp8LinearBackwardInput<T>{workspace.values(), dy, w, dx});
}
template <class T>
void fp8_weight_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                        const Fp8Rows& rounded, Vector<const T> bias, Matrix<T> y,
                        Matrix<const T> added = {}, const Fp8Rows& coded = {}) {
  run(context, Fp8WeightForward<T>{x, w, rounded, bias, y, added, coded});
}
template <class T>
void linear_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                    Vector<const T> bias, Matrix<T> y, Matrix<const T> added = {}) {
  run(context, LinearForward<T>{x, w, bias, y, added});
}
template <class T>
void linear_backward_input(const Context& context, Matrix<const T> dy, Matrix<const T> w,
                           Matrix<T> dx, Write write = Write::overwrite) {
  run(context, LinearBackwardInput<T>{dy, w, dx, write});
}
template <class T>
void linear_activation_forward(const Context& context, Activation activation, Matrix<const T> x,
                               Matrix<const T> w, Vector<const T> bias, Matrix<T> up, Matrix<T> y) {
  run(context, LinearActivationForward<T>{activation, x, w, bias, up, y});
}
template <class T>
void linear_activation_backward(const Context& context, Activation activation, Matrix<const T> dy,
                                Matrix<const T> w, Matrix<const T> up, Matrix<T> dactivated,
                                Matrix<T> dup) {
  run(context, LinearActivationBackward<T>{activation, dy, w, up, dactivated, dup});
}
template <class T>
void linear_backward_weight(const Context& context, Matrix<const T> dy, Matrix<const T> x,
                            Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias,
                            Write write = Write::add) {
  run(context, LinearBackwardWeight<T>{dy, x, dw, dbias, write});
}
template <class T>
void column_sums(const Context& context, Matrix<const T> x, Vector<Accumulate<T>> sums) {
  run(context, ColumnSums<T>{x, sums});
}
template <class T>
void batched_product(const Context& context, double alpha, Factor<T> a, Factor<T> b, double beta,
                     Tensor3<const T> c, Tensor3<T> d) {
  run(context, BatchedProduct<T>{alpha, a, b, beta, c, d});
}
template <class T>
void linear_activation_inference(const Context& context, Activation activation, Matrix<const T> x,
                                 Matrix<const T> w, const Fp8Rows& weights, Vector<const T> bias,
                                 Matrix<T> up, Matrix<T> y, const Fp8Rows& inputs = {}) {
  run(context, LinearActivationInference<T>{activation, x, w, weights, bias, up, y, inputs});
}

}  // namespace tern::ops
