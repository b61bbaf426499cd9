#include "ops/fp8.hpp"

#include "base/error.hpp"
#include "ops/cuda/fp8.hpp"
#include "ops/detail/dispatch.hpp"
#include "ops/portable/fp8.hpp"

namespace tern::ops {
namespace {

constexpr std::size_t operands_at_once = 3;

bool multiples_of_16(std::size_t N, std::size_t I, std::size_t O) {
  return N % 16 == 0 && I % 16 == 0 && O % 16 == 0;
}

}  // namespace

template <class T>
Fp8Workspace<T>::Fp8Workspace(Arena& arena, std::size_t elements)
    : operands(arena.vector<T>("fp8 operands", Term::workspace, elements)),
      magnitudes(arena.vector<std::uint32_t>("fp8 magnitudes", Term::workspace, operands_at_once)),
      undo(arena.matrix<float>("fp8 scales", Term::workspace, operands_at_once, 4)) {}

bool fp8_available(const Context& context) {
  if constexpr (detail::cuda_build)
    if (context.library) return cuda::fp8_available();
  return true;
}

template <class T>
void fp8_linear_forward(const Context& context, const Fp8Workspace<T>& work, Matrix<const T> x,
                        Matrix<const T> w, Vector<const T> bias, Matrix<T> y, Write write) {
  TERN_REQUIRE(
      x.extent(1) == w.extent(1) && y.extent(0) == x.extent(0) && y.extent(1) == w.extent(0),
      "({}, {}) x ({}, {})^T -> ({}, {})", x.extent(0), x.extent(1), w.extent(0), w.extent(1),
      y.extent(0), y.extent(1));
  if (!multiples_of_16(x.extent(0), x.extent(1), w.extent(0)))
    return linear_forward<T>(context, x, w, bias, y, write);
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::fp8_linear_forward(context, work, x, w, bias, y, write);
  portable::fp8_linear_forward<T>(context, work, x, w, bias, y, write);
}

template <class T>
void fp8_linear_backward(const Context& context, const Fp8Workspace<T>& work, Matrix<const T> dy,
                         Matrix<const T> x, Matrix<const T> w, Matrix<T> dx,
                         Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias) {
  TERN_REQUIRE(
      x.extent(1) == w.extent(1) && dy.extent(0) == x.extent(0) && dy.extent(1) == w.extent(0),
      "dy ({}, {}), x ({}, {}), w ({}, {})", dy.extent(0), dy.extent(1), x.extent(0), x.extent(1),
      w.extent(0), w.extent(1));
  if (!multiples_of_16(x.extent(0), x.extent(1), w.extent(0))) {
    linear_backward_weight<T>(context, dy, x, dw, dbias);
    return linear_backward_input<T>(context, dy, w, dx);
  }
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::fp8_linear_backward(context, work, dy, x, w, dx, dw, dbias);
  portable::fp8_linear_backward<T>(context, work, dy, x, w, dx, dw, dbias);
}

#define INSTANTIATE(T)                                                                          \
  template struct Fp8Workspace<T>;                                                              \
  template void fp8_linear_forward<T>(const Context&, const Fp8Workspace<T>&, Matrix<const T>,  \
                                      Matrix<const T>, Vector<const T>, Matrix<T>, Write);      \
  template void fp8_linear_backward<T>(const Context&, const Fp8Workspace<T>&, Matrix<const T>, \
                                       Matrix<const T>, Matrix<const T>, Matrix<T>,             \
                                       Matrix<Accumulate<T>>, Vector<Accumulate<T>>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::ops
