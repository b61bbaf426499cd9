/// The operations of experts.hpp for every Kokkos backend and storage type.
#pragma once
#include "ops/experts.hpp"

namespace tern::ops::portable {

template <class T>
void route(const Context&, bool renormalise, Matrix<const T> logits,
           Matrix<Accumulate<T>> probabilities, Matrix<Accumulate<T>> weights,
           Matrix<std::int32_t> experts);
template <class T>
void route_backward(const Context&, bool renormalise, Matrix<const Accumulate<T>> probabilities,
                    Matrix<const std::int32_t> experts, Matrix<const Accumulate<T>> weights,
                    Matrix<const Accumulate<T>> dweights, Vector<const Accumulate<T>> balance,
                    Matrix<T> dlogits);
void sort_pairs(const Context&, const Routing&);

template <class T>
void grouped_forward(const Context&, Vector<const std::int32_t> offsets, const Gathered<T>& x,
                     const Grouped<const T>& w, Matrix<T> y);
template <class T>
void grouped_backward_input(const Context&, Vector<const std::int32_t> offsets,
                            const Gathered<T>& dy, const Grouped<const T>& w, Matrix<T> dx);
template <class T>
void grouped_backward_weight(const Context&, Vector<const std::int32_t> offsets,
                             const Gathered<T>& dy, const Gathered<T>& x,
                             const Grouped<Accumulate<T>>& dw);

template <class T>
void weighted_swiglu(const Context&, Matrix<const T> x, Matrix<const Accumulate<T>> weights,
                     Vector<const std::int32_t> pairs, Matrix<T> y);
template <class T>
void weighted_swiglu_backward(const Context&, Matrix<const T> x,
                              Matrix<const Accumulate<T>> weights, Vector<const std::int32_t> pairs,
                              Matrix<const T> dy, Matrix<T> dx, Matrix<Accumulate<T>> dweights);
template <class T>
void combine(const Context&, Matrix<const T> values, Matrix<const std::int32_t> rows,
             Matrix<const T> added, Matrix<T> to);

template <class A>
void tally_experts(const Context&, Vector<const std::int32_t> offsets,
                   Matrix<const A> probabilities, Vector<A> counts, Vector<A> sums);
template <class A>
void balance_experts(const Context&, double weight, std::size_t tokens, Matrix<const A> counts,
                     Matrix<const A> sums, Vector<A> balance, Vector<A> shares, Vector<A> loss);

}  // namespace tern::ops::portable
