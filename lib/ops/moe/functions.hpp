/// The operations of this family as functions, each a call of run(). For callers that do not make the calls
/// themselves.
#pragma once
#include "ops/moe/experts.hpp"

namespace tern::ops {

template <class T>
void route(const Context& context, bool renormalize, Matrix<const T> logits,
           Matrix<Accumulate<T>> probabilities, Matrix<Accumulate<T>> weights,
           Matrix<std::int32_t> experts) {
  run(context, Route<T>{renormalize, logits, probabilities, weights, experts});
}
template <class T>
void route_backward(const Context& context, const RouteBackward<T>& call) {
  run(context, call);
}
inline void sort_pairs(const Context& context, const Routing& routing) {
  run(context, SortPairs{routing});
}
template <class T>
void grouped_forward(const Context& context, Vector<const std::int32_t> offsets,
                     const Gathered<T>& x, const Grouped<const T>& w, Matrix<T> y) {
  run(context, GroupedForward<T>{offsets, x, w, y});
}
template <class T>
void grouped_backward_input(const Context& context, Vector<const std::int32_t> offsets,
                            const Gathered<T>& dy, const Grouped<const T>& w, Matrix<T> dx) {
  run(context, GroupedBackwardInput<T>{offsets, dy, w, dx});
}
template <class T>
void grouped_backward_weight(const Context& context, Vector<const std::int32_t> offsets,
                             const Gathered<T>& dy, const Gathered<T>& x,
                             const Grouped<Accumulate<T>>& dw) {
  run(context, GroupedBackwardWeight<T>{offsets, dy, x, dw});
}
template <class T>
void weighted_swiglu(const Context& context, Matrix<const T> x, Matrix<const Accumulate<T>> weights,
                     Vector<const std::int32_t> pairs, Matrix<T> y) {
  run(context, WeightedSwiglu<T>{x, weights, pairs, y});
}
template <class T>
void weighted_swiglu_backward(const Context& context, Matrix<const T> x,
                              Matrix<const Accumulate<T>> weights, Vector<const std::int32_t> pairs,
                              Matrix<const T> dy, Matrix<T> dx, Matrix<Accumulate<T>> dweights) {
  run(context, WeightedSwigluBackward<T>{x, weights, pairs, dy, dx, dweights});
}
template <class T>
void combine(const Context& context, Matrix<const T> values, Matrix<const std::int32_t> rows,
             Matrix<const T> added, Matrix<T> to) {
  run(context, Combine<T>{values, rows, added, to});
}
template <class A>
void tally_experts(const Context& context, Vector<const std::int32_t> offsets,
                   Matrix<const A> probabilities, Vector<A> counts, Vector<A> sums) {
  run(context, TallyExperts<A>{offsets, probabilities, counts, sums});
}
template <class A>
void balance_experts(const Context& context, const ExpertBalance<A>& call) {
  run(context, call);
}

}  // namespace tern::ops
