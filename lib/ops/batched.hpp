/// Operations on batches of equal matrices, for Muon (Jordan et al. 2024, "Muon: an optimizer for
/// hidden layers in neural networks"). Conventions are those of ops.hpp: row-major views, sums in
/// Accumulate<T>, no synchronisation with the host, results that repeat bit for bit. What an
/// operation gives for one matrix does not depend on the others of its batch, but for products on
/// cuda::, whose algorithm is chosen for the batch.
///
/// Legend: M matrices of R rows and C columns. A matrix of the parameters stands in a span, from
/// element at(i) on: M matrices anywhere in it, which do not overlap.
#pragma once
#include "ops/context.hpp"

namespace tern::ops {

/// One factor of a product: each matrix as it is, or transposed.
template <class T>
struct Factor {
  Tensor3<const T> matrices;
  bool transposed = false;

  std::size_t rows() const { return matrices.extent(transposed ? 2 : 1); }
  std::size_t columns() const { return matrices.extent(transposed ? 1 : 2); }
};

/// d (M, R, C) = alpha a b + beta c for each matrix. c (M, R, C), not read if beta is 0. d is none
/// of the others.
template <class T>
void batched_product(const Context&, double alpha, Factor<T> a, Factor<T> b, double beta,
                     Tensor3<const T> c, Tensor3<T> d);

/// squares (M) = the sum of squares of each matrix of `elements` elements of the span.
template <class A>
void sums_of_squares(const Context&, Vector<const A> span, Vector<const std::size_t> at,
                     std::size_t elements, Vector<A> squares);

/// to (M, R, C) = the span's matrices, each over max(sqrt(its squares), eps); squares (M).
template <class T>
void normalize(const Context&, Vector<const Accumulate<T>> span, Vector<const std::size_t> at,
               Vector<const Accumulate<T>> squares, double eps, Tensor3<T> to);

/// The matrices of the master span = keep * master - step * direction (M, R, C); the same elements
/// of copy receive the new values in storage type (it may be empty, or the master itself for
/// float). A gradient_scale (1) of 0 or NaN leaves everything as it is (a skipped step).
template <class T, class S>
void descend(const Context&, double keep, double step, Tensor3<const S> direction,
             Vector<const std::size_t> at, Vector<const Accumulate<T>> gradient_scale,
             Vector<Accumulate<T>> master, Vector<T> copy);

}  // namespace tern::ops
