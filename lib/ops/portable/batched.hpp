/// The operations of batched.hpp for every Kokkos backend and storage type.
#pragma once
#include "ops/batched.hpp"

namespace tern::ops::portable {

template <class T>
void batched_product(const Context&, double alpha, Factor<T> a, Factor<T> b, double beta,
                     Tensor3<const T> c, Tensor3<T> d);
template <class A>
void sums_of_squares(const Context&, Vector<const A> span, Vector<const std::size_t> at,
                     std::size_t elements, Vector<A> squares);
template <class T>
void normalize(const Context&, Vector<const Accumulate<T>> span, Vector<const std::size_t> at,
               Vector<const Accumulate<T>> squares, double eps, Tensor3<T> to);
template <class T, class S>
void descend(const Context&, double keep, double step, Tensor3<const S> direction,
             Vector<const std::size_t> at, Vector<const Accumulate<T>> gradient_scale,
             Vector<Accumulate<T>> master, Vector<T> copy);

}  // namespace tern::ops::portable
