#include "ops/linear/fp8.hpp"

#include "base/error.hpp"

namespace tern::ops {
namespace {

using Bytes = Matrix<std::uint8_t>;

/// The numbers in the workspace, from element `at` on.
template <class T>
Matrix<const T> numbers(const Context& context, const Fp8Matrix& of, bool transposed,
                        const Vector<T>& workspace, std::size_t at = 0) {
  const Bytes codes = transposed ? of.transposed : of.straight;
  TERN_REQUIRE(at + codes.size() <= workspace.size(), "{} + {} elements of {}", at, codes.size(),
               workspace.size());
  const Matrix<T> to(workspace.data() + at, codes.extent(transposed ? 1 : 0),
                     codes.extent(transposed ? 0 : 1));
  fp8_numbers<T>(context, of, transposed, to);
  return to;
}

/// a (m, k) and b (n, k) are read for y (m, n).
template <class Y>
void require_shapes(const Bytes& a, const Bytes& b, const Y& y) {
  TERN_REQUIRE(a.extent(1) == b.extent(1) && y.extent(0) == a.extent(0) &&
                   y.extent(1) == b.extent(0) && fp8_takes(a.extent(0), a.extent(1), b.extent(0)),
               "({}, {}) x ({}, {})^T -> ({}, {})", a.extent(0), a.extent(1), b.extent(0),
               b.extent(1), y.extent(0), y.extent(1));
}

}  // namespace

template <class T>
void fp8_linear_forward(const Context& context, const Fp8Workspace<T>& work, const Fp8Matrix& x,
                        const Fp8Matrix& w, Vector<const T> bias, Matrix<T> y,
                        Matrix<const T> added) {
  require_shapes(x.straight, w.straight, y);
  if (native<&fp8_linear_forward<T>>(context, work, x, w, bias, y, added)) return;
  const auto a = numbers<T>(context, x, false, work.values());
  const auto b = numbers<T>(context, w, false, work.values(), a.size());
  linear_forward<T>(context.portable(), a, b, bias, y, added);
}

template <class T>
void fp8_linear_backward_weight(const Context& context, const Fp8Workspace<T>& work,
                                const Fp8Matrix& dy, const Fp8Matrix& x, Matrix<Accumulate<T>> dw,
                                Write write) {
  require_shapes(dy.transposed, x.transposed, dw);
  if (dy.transposed.extent(1) == 0 && write == Write::overwrite)
    return Kokkos::deep_copy(context.space, dw, Accumulate<T>(0));
  if (native<&fp8_linear_backward_weight<T>>(context, work, dy, x, dw, write)) return;
  const auto a = numbers<T>(context, dy, true, work.values());
  const auto b = numbers<T>(context, x, true, work.values(), a.size());
  linear_backward_weight<T>(context.portable(), a, b, dw, {}, write);
}

template <class T>
void fp8_linear_backward_input(const Context& context, const Fp8Workspace<T>& work,
                               const Fp8Matrix& dy, const Fp8Matrix& w, Matrix<T> dx) {
  require_shapes(dy.straight, w.transposed, dx);
  if (native<&fp8_linear_backward_input<T>>(context, work, dy, w, dx)) return;
  const auto a = numbers<T>(context, dy, false, work.values());
  const auto b = numbers<T>(context, w, true, work.values(), a.size());
  linear_backward_input<T>(context.portable(), a, b, dx);
}

#define INSTANTIATE(T)                                                            \
  template decltype(fp8_linear_forward<T>) fp8_linear_forward<T>;                 \
  template decltype(fp8_linear_backward_weight<T>) fp8_linear_backward_weight<T>; \
  template decltype(fp8_linear_backward_input<T>) fp8_linear_backward_input<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
