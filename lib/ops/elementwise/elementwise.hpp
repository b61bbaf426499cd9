/// Elementwise operations and sums over whole vectors. Conventions: ops.hpp.
#pragma once
#include "ops/elementwise/dropout.hpp"

namespace tern::ops {

/// y += x.
template <class T>
struct Add {
  static constexpr Traits traits{.name = "tern::add", .native = is_half<T>};
  Matrix<const T> x;
  Matrix<T> y;

  void check() const;
  double bytes() const { return bytes_of(x) + 2 * bytes_of(y); }
  static void portable(const Context&, const Add&);
  static bool native(const Context&, const Add&);
};

/// to (N, D) = a + b + c, each of N rows, one row (broadcast) or none; it may be one of N rows.
template <class T>
struct Sum {
  static constexpr Traits traits{.name = "tern::sum", .native = is_half<T>};
  Matrix<const T> a, b, c;
  Matrix<T> to;

  void check() const;
  double bytes() const { return bytes_of(a, b, c, to); }
  static void portable(const Context&, const Sum&);
  static bool native(const Context&, const Sum&);
};

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
struct Convert {
  static constexpr Traits traits{.name = "tern::convert",
                                 .native = (is_half<From> && std::is_same_v<To, float>) ||
                                           (std::is_same_v<From, float> && is_half<To>)};
  Vector<const From> from;
  Vector<To> to;

  void check() const;
  double bytes() const { return bytes_of(from, to); }
  static void portable(const Context&, const Convert&);
  static bool native(const Context&, const Convert&);
};

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
struct DrawNormal {
  static constexpr Traits traits{.name = "tern::draw_normal"};
  Normal of;
  Vector<T> to;

  double bytes() const { return bytes_of(to); }
  static void portable(const Context&, const DrawNormal&);
};

/// result (1) = sum of weights_i * values_i (weights empty: plain sum).
template <class A>
struct WeightedSum {
  static constexpr Traits traits{.name = "tern::weighted_sum"};
  Vector<const A> values, weights;
  Vector<A> result;

  double bytes() const { return bytes_of(values, weights, result); }
  static void portable(const Context&, const WeightedSum&);
};

/// result (1) = sum of squares.
template <class A>
struct SumOfSquares {
  static constexpr Traits traits{.name = "tern::sum_of_squares"};
  Vector<const A> values;
  Vector<A> result;

  double bytes() const { return bytes_of(values, result); }
  static void portable(const Context&, const SumOfSquares&);
};

}  // namespace tern::ops
