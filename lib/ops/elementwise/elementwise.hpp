/// Elementwise operations and sums over whole vectors. Conventions: ops.hpp.
#pragma once
#include "ops/elementwise/dropout.hpp"

namespace tern::ops {

/// y += x.
template <class T>
void add(const Context&, Matrix<const T> x, Matrix<T> y);
/// to (N, D) = a + b + c, each of N rows, one row (broadcast) or none; it may be one of N rows.
template <class T>
void sum(const Context&, Matrix<const T> a, Matrix<const T> b, Matrix<const T> c, Matrix<T> to);
/// Arguments of a sum() that the operation which reads its result computes on the way; each term has
/// N rows or none.
template <class T>
struct PendingSum {
  Matrix<const T> a, b, c;
  Matrix<T> to;
  DropoutKey dropout = {};  // of b, if its probability is not 0; there is no c then
  bool wanted() const { return to.extent(0) > 0; }
};
/// Computes it.
template <class T>
void make_sum(const Context&, const PendingSum<T>&);
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

template <class T>
bool native_add(const Context& context, Matrix<const T> x, Matrix<T> y);
template <>
inline constexpr auto native_kernel<&add<bf16>> = native_entry("tern::add", native_add<bf16>);
template <>
inline constexpr auto native_kernel<&add<fp16>> = native_entry("tern::add", native_add<fp16>);
template <>
struct Traffic<&add<bf16>> {
  double operator()(const auto& x, const auto& y) const { return bytes_of(x) + 2 * bytes_of(y); }
};
template <>
struct Traffic<&add<fp16>> : Traffic<&add<bf16>> {};
template <class T>
bool native_sum(const Context& context, Matrix<const T> a, Matrix<const T> b, Matrix<const T> c,
                Matrix<T> to);
template <>
inline constexpr auto native_kernel<&sum<bf16>> = native_entry("tern::sum", native_sum<bf16>);
template <>
inline constexpr auto native_kernel<&sum<fp16>> = native_entry("tern::sum", native_sum<fp16>);
template <class T>
bool native_narrow(const Context& context, Vector<const float> from, Vector<T> to);
template <>
inline constexpr auto native_kernel<&convert<float, bf16>> = native_entry("tern::convert",
                                                                          native_narrow<bf16>);
template <>
inline constexpr auto native_kernel<&convert<float, fp16>> = native_entry("tern::convert",
                                                                          native_narrow<fp16>);
template <class T>
bool native_widen(const Context& context, Vector<const T> from, Vector<float> to);
template <>
inline constexpr auto native_kernel<&convert<bf16, float>> = native_entry("tern::convert",
                                                                          native_widen<bf16>);
template <>
inline constexpr auto native_kernel<&convert<fp16, float>> = native_entry("tern::convert",
                                                                          native_widen<fp16>);

}  // namespace tern::ops
