/// The operations of this family as functions, each a call of run(). For callers that do not make the calls
/// themselves.
#pragma once
#include "ops/activation/activation.hpp"

namespace tern::ops {

template <class T>
void activation_forward(const Context& context, Activation kind, Matrix<const T> x, Matrix<T> y,
                        const Fp8Matrix& rounded = {}) {
  run(context, ActivationForward<T>{kind, x, y, rounded});
}
template <class T>
void activation_backward(const Context& context, Activation kind, Matrix<const T> x,
                         Matrix<const T> dy, Matrix<T> dx, const Fp8Matrix& rounded = {}) {
  run(context, ActivationBackward<T>{kind, x, dy, dx, rounded});
}

}  // namespace tern::ops
