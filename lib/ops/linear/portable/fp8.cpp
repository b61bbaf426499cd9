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
  run(context, Fp8Numbers<T>{.of = of, .transposed = transposed, .to = to});
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
void Fp8LinearForward<T>::check() const {
  require_shapes(x.straight, w.straight, y);
}

template <class T>
void Fp8LinearForward<T>::portable(const Context& context, const Fp8LinearForward& call) {
  const auto a = numbers<T>(context, call.x, false, call.workspace);
  const auto b = numbers<T>(context, call.w, false, call.workspace, a.size());
  run(context.portable(),
      LinearForward<T>{.x = a, .w = b, .bias = call.bias, .y = call.y, .added = call.added});
}

template <class T>
void Fp8LinearBackwardWeight<T>::check() const {
  require_shapes(dy.transposed, x.transposed, dw);
}

template <class T>
void Fp8LinearBackwardWeight<T>::portable(const Context& context,
                                          const Fp8LinearBackwardWeight& call) {
  if (call.dy.transposed.extent(1) == 0 && call.write == Write::overwrite)
    return Kokkos::deep_copy(context.space, call.dw, Accumulate<T>(0));
  const auto a = numbers<T>(context, call.dy, true, call.workspace);
  const auto b = numbers<T>(context, call.x, true, call.workspace, a.size());
  run(context.portable(),
      LinearBackwardWeight<T>{.dy = a, .x = b, .dw = call.dw, .write = call.write});
}

template <class T>
void Fp8LinearBackwardInput<T>::check() const {
  require_shapes(dy.straight, w.transposed, dx);
}

template <class T>
void Fp8LinearBackwardInput<T>::portable(const Context& context,
                                         const Fp8LinearBackwardInput& call) {
  const auto a = numbers<T>(context, call.dy, false, call.workspace);
  const auto b = numbers<T>(context, call.w, true, call.workspace, a.size());
  run(context.portable(), LinearBackwardInput<T>{.dy = a, .w = b, .dx = call.dx});
}

TERN_INSTANTIATE_PORTABLE(Fp8LinearForward)
TERN_INSTANTIATE_PORTABLE(Fp8LinearBackwardWeight)
TERN_INSTANTIATE_PORTABLE(Fp8LinearBackwardInput)

}  // namespace tern::ops
