#include "ops/linear/fp8_weight.hpp"

#include "base/error.hpp"

namespace tern::ops {

template <class T>
void fp8_weight_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                        const Fp8Rows& rounded, Vector<const T> bias, Matrix<T> y,
                        Matrix<const T> added, const Fp8Rows& coded) {
  TERN_REQUIRE(x.extent(1) == w.extent(1) && y.extent(0) == x.extent(0) &&
                   y.extent(1) == w.extent(0) && rounded.undo.size() == w.extent(0) &&
                   (!coded.wanted() || coded.undo.size() == x.extent(0)),
               "({}, {}) x ({}, {})^T -> ({}, {}), {} and {} scales", x.extent(0), x.extent(1),
               w.extent(0), w.extent(1), y.extent(0), y.extent(1), rounded.undo.size(),
               coded.undo.size());
  if (native<&fp8_weight_forward<T>>(context, x, w, rounded, bias, y, added, coded)) return;
  linear_forward<T>(context, x, w, bias, y, added);
}

#define INSTANTIATE(T) template decltype(fp8_weight_forward<T>) fp8_weight_forward<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
