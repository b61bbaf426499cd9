/// The operations of this family as functions, each a call of run(). For callers that do not make the calls
/// themselves.
#pragma once
#include "ops/elementwise/connection.hpp"
#include "ops/elementwise/dropout.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/elementwise/fp8_matrix.hpp"
#include "ops/elementwise/fp8_rows.hpp"

namespace tern::ops {

template <class T>
void connect_forward(const Context& context, const ConnectForward<T>& call) {
  run(context, call);
}
template <class T>
void connect_backward(const Context& context, const ConnectBackward<T>& call) {
  run(context, call);
}
template <class T>
void add_scaled_rows(const Context& context, Vector<const std::int32_t> tokens,
                     Matrix<const T> table, Vector<const T> scale, Matrix<T> fused,
                     std::size_t first) {
  run(context, AddScaledRows<T>{tokens, table, scale, fused, first});
}
template <class T>
void scaled_rows_backward(const Context& context, const ScaledRowsBackward<T>& call) {
  run(context, call);
}
template <class T>
void dropout(const Context& context, const DropoutKey& key, Matrix<const T> x,
             Matrix<const T> added, Matrix<T> y) {
  run(context, Dropout<T>{key, x, added, y});
}
template <class T>
void add(const Context& context, Matrix<const T> x, Matrix<T> y) {
  run(context, Add<T>{x, y});
}
template <class T>
void sum(const Context& context, Matrix<const T> a, Matrix<const T> b, Matrix<const T> c,
         Matrix<T> to) {
  run(context, Sum<T>{a, b, c, to});
}
template <class From, class To>
void convert(const Context& context, Vector<const From> from, Vector<To> to) {
  run(context, Convert<From, To>{from, to});
}
template <class T>
void largest_magnitude(const Context& context, Matrix<const T> x, Magnitude magnitude) {
  run(context, LargestMagnitude<T>{x, magnitude});
}
template <class T>
void fp8_round(const Context& context, Matrix<const T> values, const Fp8Matrix& to,
               Scaling scaling) {
  run(context, Fp8Round<T>{values, to, scaling});
}
template <class T>
void fp8_numbers(const Context& context, const Fp8Matrix& of, bool transposed, Matrix<T> to) {
  run(context, Fp8Numbers<T>{of, transposed, to});
}
template <class T>
void fp8_round_rows(const Context& context, Matrix<T> x, const Fp8Rows& to) {
  run(context, Fp8RoundRows<T>{x, to});
}
template <class T>
void draw_normal(const Context& context, const Normal& of, Vector<T> to) {
  run(context, DrawNormal<T>{of, to});
}
template <class A>
void weighted_sum(const Context& context, Vector<const A> values, Vector<const A> weights,
                  Vector<A> result) {
  run(context, WeightedSum<A>{values, weights, result});
}
template <class A>
void sum_of_squares(const Context& context, Vector<const A> values, Vector<A> result) {
  run(context, SumOfSquares<A>{values, result});
}

}  // namespace tern::ops
