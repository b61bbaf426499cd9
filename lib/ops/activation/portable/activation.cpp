#include "ops/activation/activation.hpp"
#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"
#include "ops/core/portable/math.hpp"

namespace tern::ops {
using namespace portable;
namespace {

using detail::Team;

/// GELU in its tanh form, x/2 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), which is
/// x sigmoid(2 u).
struct Gelu {
  template <class A>
  static KOKKOS_INLINE_FUNCTION A twice_u(A x) {
    return A(1.5957691216057308) * x * (A(1) + A(0.044715) * x * x);
  }
  template <class A>
  static KOKKOS_INLINE_FUNCTION A value(A x) {
    return x * sigmoid(twice_u(x));
  }
  template <class A>
  static KOKKOS_INLINE_FUNCTION A slope(A x) {
    const Logistic<A> s = logistic(twice_u(x));
    const A twice_du = A(1.5957691216057308) * (A(1) + A(3 * 0.044715) * x * x);
    return s.value + x * s.slope * twice_du;
  }
};

struct Relu2 {
  template <class A>
  static KOKKOS_INLINE_FUNCTION A value(A x) {
    const A positive = x > A(0) ? x : A(0);
    return positive * positive;
  }
  template <class A>
  static KOKKOS_INLINE_FUNCTION A slope(A x) {
    return x > A(0) ? A(2) * x : A(0);
  }
};

template <class Function, class T>
void unary_forward(const Context& context, Matrix<const T> x, Matrix<T> y) {
  using A = Accumulate<T>;
  const T* in = x.data();
  T* out = y.data();
  detail::for_each(
      context, "tern::activation_forward", x.size(),
      KOKKOS_LAMBDA(const std::size_t i) { out[i] = T(Function::value(A(in[i]))); });
}

template <class Function, class T>
void unary_backward(const Context& context, Matrix<const T> x, Matrix<const T> dy, Matrix<T> dx) {
  using A = Accumulate<T>;
  const T *in = x.data(), *dout = dy.data();
  T* out = dx.data();
  detail::for_each(
      context, "tern::activation_backward", x.size(),
      KOKKOS_LAMBDA(const std::size_t i) { out[i] = T(A(dout[i]) * Function::slope(A(in[i]))); });
}

template <class T>
void swiglu_forward(const Context& context, Matrix<const T> x, Matrix<T> y) {
  using A = Accumulate<T>;
  const int width = static_cast<int>(y.extent(1));
  detail::for_each_row(
      context, "tern::swiglu_forward", y.extent(0), KOKKOS_LAMBDA(const Team& team, const int row) {
        const T *gate = &x(row, 0), *up = gate + width;
        T* out = &y(row, 0);
        detail::columns(team, width, [&](int i) {
          const A g = A(gate[i]);
          out[i] = T(g * sigmoid(g) * A(up[i]));
        });
      });
}

template <class T>
void swiglu_backward(const Context& context, Matrix<const T> x, Matrix<const T> dy, Matrix<T> dx) {
  using A = Accumulate<T>;
  const int width = static_cast<int>(dy.extent(1));
  detail::for_each_row(
      context, "tern::swiglu_backward", dy.extent(0),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        const T *gate = &x(row, 0), *up = gate + width, *dout = &dy(row, 0);
        T *dgate = &dx(row, 0), *dup = dgate + width;
        detail::columns(team, width, [&](int i) {
          const A g = A(gate[i]), u = A(up[i]), d = A(dout[i]);
          const Logistic<A> s = logistic(g);
          dgate[i] = T(d * u * (s.value + g * s.slope));
          dup[i] = T(d * g * s.value);
        });
      });
}

template <class X, class Y>
void require_widths(Activation kind, const X& x, const Y& y) {
  const std::size_t inputs = gated(kind) ? 2 : 1;
  TERN_REQUIRE(x.extent(0) == y.extent(0) && x.extent(1) == inputs * y.extent(1),
               "({}, {}) to ({}, {})", x.extent(0), x.extent(1), y.extent(0), y.extent(1));
}

}  // namespace

template <class T>
void ActivationForward<T>::check() const {
  require_widths(kind, x, y);
}

template <class T>
void ActivationForward<T>::portable(const Context& context, const ActivationForward& call) {
  switch (call.kind) {
    case Activation::swiglu:
      swiglu_forward<T>(context, call.x, call.y);
      break;
    case Activation::gelu:
      unary_forward<Gelu, T>(context, call.x, call.y);
      break;
    case Activation::relu2:
      unary_forward<Relu2, T>(context, call.x, call.y);
      break;
  }
  if (call.rounded.wanted())
    run(context, Fp8Round<T>{.values = call.y, .to = call.rounded, .scaling = context.scaling});
}

template <class T>
void ActivationBackward<T>::check() const {
  require_widths(kind, x, dy);
  TERN_REQUIRE(dx.size() == x.size(), "{} gradients of {}", dx.size(), x.size());
}

template <class T>
void ActivationBackward<T>::portable(const Context& context, const ActivationBackward& call) {
  switch (call.kind) {
    case Activation::swiglu:
      swiglu_backward<T>(context, call.x, call.dy, call.dx);
      break;
    case Activation::gelu:
      unary_backward<Gelu, T>(context, call.x, call.dy, call.dx);
      break;
    case Activation::relu2:
      unary_backward<Relu2, T>(context, call.x, call.dy, call.dx);
      break;
  }
  if (call.rounded.wanted())
    run(context, Fp8Round<T>{.values = call.dx, .to = call.rounded, .scaling = context.scaling});
}

TERN_INSTANTIATE_PORTABLE(ActivationForward)
TERN_INSTANTIATE_PORTABLE(ActivationBackward)

}  // namespace tern::ops
