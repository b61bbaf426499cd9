// The operations of batched.hpp: see dispatch.cpp.
#include "base/error.hpp"
#include "ops/cuda/batched.hpp"
#include "ops/detail/dispatch.hpp"
#include "ops/portable/batched.hpp"

namespace tern::ops {

template <class T>
void batched_product(const Context& context, double alpha, Factor<T> a, Factor<T> b, double beta,
                     Tensor3<const T> c, Tensor3<T> d) {
  const std::size_t count = d.extent(0);
  TERN_REQUIRE(a.matrices.extent(0) == count && b.matrices.extent(0) == count &&
                   a.rows() == d.extent(1) && b.columns() == d.extent(2) && a.columns() == b.rows(),
               "{} ({}, {}) by {} ({}, {}) -> {} ({}, {})", a.matrices.extent(0), a.rows(),
               a.columns(), b.matrices.extent(0), b.rows(), b.columns(), count, d.extent(1),
               d.extent(2));
  TERN_REQUIRE(beta == 0 || (c.size() == d.size() && c.extent(1) == d.extent(1)),
               "{} ({}, {}) added to {} ({}, {})", c.extent(0), c.extent(1), c.extent(2), count,
               d.extent(1), d.extent(2));
  if (d.size() == 0) return;
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::batched_product(context, alpha, a, b, beta, c, d);
  portable::batched_product<T>(context, alpha, a, b, beta, c, d);
}

template <class A>
void sums_of_squares(const Context& context, Vector<const A> span, Vector<const std::size_t> at,
                     std::size_t elements, Vector<A> squares) {
  portable::sums_of_squares<A>(context, span, at, elements, squares);
}

template <class T>
void normalize(const Context& context, Vector<const Accumulate<T>> span,
               Vector<const std::size_t> at, Vector<const Accumulate<T>> squares, double eps,
               Tensor3<T> to) {
  portable::normalize<T>(context, span, at, squares, eps, to);
}

template <class T, class S>
void descend(const Context& context, double keep, double step, Tensor3<const S> direction,
             Vector<const std::size_t> at, Vector<const Accumulate<T>> gradient_scale,
             Vector<Accumulate<T>> master, Vector<T> copy) {
  portable::descend<T, S>(context, keep, step, direction, at, gradient_scale, master, copy);
}

#define INSTANTIATE(T)                                                                       \
  template void batched_product<T>(const Context&, double, Factor<T>, Factor<T>, double,     \
                                   Tensor3<const T>, Tensor3<T>);                            \
  template void normalize<T>(const Context&, Vector<const Accumulate<T>>,                    \
                             Vector<const std::size_t>, Vector<const Accumulate<T>>, double, \
                             Tensor3<T>);                                                    \
  template void descend<T, T>(const Context&, double, double, Tensor3<const T>,              \
                              Vector<const std::size_t>, Vector<const Accumulate<T>>,        \
                              Vector<Accumulate<T>>, Vector<T>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
template void descend<bf16, float>(const Context&, double, double, Tensor3<const float>,
                                   Vector<const std::size_t>, Vector<const float>, Vector<float>,
                                   Vector<bf16>);
template void sums_of_squares<float>(const Context&, Vector<const float>, Vector<const std::size_t>,
                                     std::size_t, Vector<float>);
template void sums_of_squares<double>(const Context&, Vector<const double>,
                                      Vector<const std::size_t>, std::size_t, Vector<double>);

}  // namespace tern::ops
