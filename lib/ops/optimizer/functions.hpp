/// The operations of this family as functions, each a call of run(). For callers that do not make the calls
/// themselves.
#pragma once
#include "ops/optimizer/optimizer.hpp"

namespace tern::ops {

template <class T>
void adamw_update(const Context& context, const AdamWUpdate<T>& call) {
  run(context, call);
}
template <class A>
void clip_scale(const Context& context, Vector<const A> squares, double limit, double loss_scale,
                Vector<A> scale, Vector<A> norm) {
  run(context, ClipScale<A>{squares, limit, loss_scale, scale, norm});
}
template <class A>
void move_average(const Context& context, double decay, Vector<const A> values, Vector<A> average) {
  run(context, MoveAverage<A>{decay, values, average});
}
template <class A>
void exchange(const Context& context, Vector<A> a, Vector<A> b) {
  run(context, Exchange<A>{a, b});
}
template <class A>
void nesterov(const Context& context, double momentum, Vector<A> gradient,
              Vector<const A> gradient_scale, Vector<A> buffer) {
  run(context, Nesterov<A>{momentum, gradient, gradient_scale, buffer});
}
template <class A>
void sums_of_squares(const Context& context, Vector<const A> span, Vector<const std::size_t> at,
                     std::size_t elements, Vector<A> squares) {
  run(context, SumsOfSquares<A>{span, at, elements, squares});
}
template <class T>
void normalize(const Context& context, Vector<const Accumulate<T>> span,
               Vector<const std::size_t> at, Vector<const Accumulate<T>> squares, double eps,
               Tensor3<T> to) {
  run(context, Normalize<T>{span, at, squares, eps, to});
}
template <class T, class S>
void descend(const Context& context, const Descent<T, S>& call) {
  run(context, call);
}

}  // namespace tern::ops
