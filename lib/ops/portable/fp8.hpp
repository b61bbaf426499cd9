/// The reference implementation of the operations of ops/fp8.hpp, for T in {float, double, bf16}.
#pragma once
#include "ops/fp8.hpp"

namespace tern::ops::portable {

template <class T>
void fp8_linear_forward(const Context&, const Fp8Workspace<T>&, Matrix<const T> x,
                        Matrix<const T> w, Vector<const T> bias, Matrix<T> y, Write);
template <class T>
void fp8_linear_backward(const Context&, const Fp8Workspace<T>&, Matrix<const T> dy,
                         Matrix<const T> x, Matrix<const T> w, Matrix<T> dx,
                         Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias);

}  // namespace tern::ops::portable
