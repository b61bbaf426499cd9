/// Elementwise operations and sums over whole vectors. Conventions: ops.hpp.
#pragma once
#include "ops/native.hpp"

namespace tern::ops {

/// y += x.
template <class T>
void add(const Context&, Matrix<const T> x, Matrix<T> y);
/// to (N, D) = a + b + c, each of N rows, one row (broadcast) or none.
template <class T>
void sum(const Context&, Matrix<const T> a, Matrix<const T> b, Matrix<const T> c, Matrix<T> to);
/// to = from, with rounding.
template <class From, class To>
void convert(const Context&, Vector<const From> from, Vector<To> to);

/// Normally distributed numbers for part of a matrix. Each is a function of the seed, the number of
/// the matrix and the element's place in it.
struct Normal {
  double mean, std;
  std::uint64_t seed, matrix;
  std::size_t columns, all_columns;  // of the part, of the matrix
  std::size_t first, begin;          // element of the matrix where the part starts, of the part
};
/// to: elements of the part from `begin` on.
template <class T>
void draw_normal(const Context&, const Normal&, Vector<T> to);

/// result (1) = sum of weights_i * values_i (weights empty: plain sum).
template <class A>
void weighted_sum(const Context&, Vector<const A> values, Vector<const A> weights,
                  Vector<A> result);
/// result (1) = sum of squares.
template <class A>
void sum_of_squares(const Context&, Vector<const A> values, Vector<A> result);

Twin<&add<bf16>> native_add;
template <>
inline constexpr auto twin<&add<bf16>> = in_cuda("tern::add", native_add);
template <>
struct Traffic<&add<bf16>> {
  double operator()(const auto& x, const auto& y) const { return bytes_of(x) + 2 * bytes_of(y); }
};
Twin<&sum<bf16>> native_sum;
template <>
inline constexpr auto twin<&sum<bf16>> = in_cuda("tern::sum", native_sum);
Twin<&convert<float, bf16>> native_narrow;
template <>
inline constexpr auto twin<&convert<float, bf16>> = in_cuda("tern::convert", native_narrow);
Twin<&convert<bf16, float>> native_widen;
template <>
inline constexpr auto twin<&convert<bf16, float>> = in_cuda("tern::convert", native_widen);

}  // namespace tern::ops
