#include "base/error.hpp"
#include "ops/portable/detail/loops.hpp"
#include "ops/portable/portable.hpp"

namespace tern::ops::portable {
namespace {

/// Whether a, of b's shape or of the transposed one, is transposed; a square one is not.
template <class X, class Y>
bool transposed(const X& a, const Y& b) {
  const bool same = a.extent(0) == b.extent(0) && a.extent(1) == b.extent(1);
  TERN_REQUIRE(same || (a.extent(0) == b.extent(1) && a.extent(1) == b.extent(0)),
               "({}, {}) for ({}, {})", a.extent(0), a.extent(1), b.extent(0), b.extent(1));
  return !same;
}

/// body(i, j): element i of a row-major matrix of `columns` columns and its place j in the matrix
/// that `flip` says is transposed.
template <class F>
void for_each_pair(const Context& context, const char* label, std::size_t n, std::size_t columns,
                   bool flip, const F& body) {
  if (!flip) {
    detail::for_each(
        context, label, n, KOKKOS_LAMBDA(const std::size_t i) { body(i, i); });
    return;
  }
  const std::size_t rows = n / columns;
  detail::for_each(
      context, label, n,
      KOKKOS_LAMBDA(const std::size_t i) { body(i, i % columns * rows + i / columns); });
}

template <class T>
struct Normalize {
  using A = Accumulate<T>;
  const A *from, *squares;
  A eps;
  T* to;
  KOKKOS_FUNCTION void operator()(const std::size_t i, const std::size_t j) const {
    const A norm = Kokkos::sqrt(squares[0]);
    to[j] = T(from[i] / (norm > eps ? norm : eps));
  }
};

template <class T, class S>
struct Descend {
  using A = Accumulate<T>;
  A keep, step;
  const S* direction;
  const A* scale;
  A* master;
  T* copy;  // null: none
  KOKKOS_FUNCTION void operator()(const std::size_t i, const std::size_t j) const {
    if (!(scale[0] > 0)) return;  // a skipped step; NaN too
    const A w = keep * master[i] - step * A(direction[j]);
    master[i] = w;
    if (copy) copy[i] = T(w);
  }
};

}  // namespace

template <class A>
void nesterov(const Context& context, double momentum, Vector<A> gradient,
              Vector<const A> gradient_scale, Vector<A> buffer) {
  const A mu = static_cast<A>(momentum), fresh = static_cast<A>(1 - momentum);
  A *g = gradient.data(), *b = buffer.data();
  const A* scale = gradient_scale.data();
  detail::for_each(
      context, "nesterov", gradient.size(), KOKKOS_LAMBDA(const std::size_t i) {
        if (scale[0] > 0) {
          const A clipped = scale[0] * g[i];
          b[i] += fresh * (clipped - b[i]);
          g[i] = clipped + mu * (b[i] - clipped);
        }
      });
}

template <class T>
void normalize(const Context& context, Matrix<const Accumulate<T>> from,
               Vector<const Accumulate<T>> squares, double eps, Matrix<T> to) {
  for_each_pair(
      context, "normalize", from.size(), from.extent(1), transposed(to, from),
      Normalize<T>{from.data(), squares.data(), static_cast<Accumulate<T>>(eps), to.data()});
}

template <class T>
void combine(const Context& context, double d, double a, Matrix<const T> x, double b, Matrix<T> y) {
  using A = Accumulate<T>;
  const A p = static_cast<A>(a), q = static_cast<A>(b), r = static_cast<A>(d);
  const T* in = x.data();
  T* out = y.data();
  const std::size_t diagonal = x.extent(1) + 1;
  TERN_REQUIRE(x.extent(0) == x.extent(1) && !transposed(x, y), "({}, {}) -> ({}, {})", x.extent(0),
               x.extent(1), y.extent(0), y.extent(1));
  detail::for_each(
      context, "combine", x.size(), KOKKOS_LAMBDA(const std::size_t i) {
        const A one = i % diagonal == 0 ? r : A(0);
        out[i] = T(one + (p * A(in[i]) + q * A(out[i])));
      });
}

template <class T, class S>
void descend(const Context& context, double keep, double step, Matrix<const S> direction,
             Vector<const Accumulate<T>> gradient_scale, Matrix<Accumulate<T>> master,
             Matrix<T> copy) {
  using A = Accumulate<T>;
  const bool copies =
      copy.size() > 0 && static_cast<const void*>(copy.data()) != static_cast<void*>(master.data());
  for_each_pair(
      context, "descend", master.size(), master.extent(1), transposed(direction, master),
      Descend<T, S>{static_cast<A>(keep), static_cast<A>(step), direction.data(),
                    gradient_scale.data(), master.data(), copies ? copy.data() : nullptr});
}

#define INSTANTIATE(T)                                                                          \
  template void normalize<T>(const Context&, Matrix<const Accumulate<T>>,                       \
                             Vector<const Accumulate<T>>, double, Matrix<T>);                   \
  template void combine<T>(const Context&, double, double, Matrix<const T>, double, Matrix<T>); \
  template void descend<T, T>(const Context&, double, double, Matrix<const T>,                  \
                              Vector<const Accumulate<T>>, Matrix<Accumulate<T>>, Matrix<T>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
template void descend<bf16, float>(const Context&, double, double, Matrix<const float>,
                                   Vector<const float>, Matrix<float>, Matrix<bf16>);
template void nesterov<float>(const Context&, double, Vector<float>, Vector<const float>,
                              Vector<float>);
template void nesterov<double>(const Context&, double, Vector<double>, Vector<const double>,
                               Vector<double>);

}  // namespace tern::ops::portable
