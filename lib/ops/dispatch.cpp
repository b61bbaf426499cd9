// Each operation of ops.hpp goes to its cuda:: twin where there is one for its storage type and the
// context has the libraries, and to the portable one otherwise. The rest: dispatch_attention.cpp.
#include "ops/detail/dispatch.hpp"

#include "base/error.hpp"

namespace tern::ops {

template <class T>
void linear_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                    Vector<const T> bias, Matrix<T> y, Write write) {
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::linear_forward(context, x, w, bias, y, write);
  portable::linear_forward<T>(context, x, w, bias, y, write);
}

template <class T>
void linear_backward_input(const Context& context, Matrix<const T> dy, Matrix<const T> w,
                           Matrix<T> dx, Write write) {
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::linear_backward_input(context, dy, w, dx, write);
  portable::linear_backward_input<T>(context, dy, w, dx, write);
}

template <class T>
void linear_backward_weight(const Context& context, Matrix<const T> dy, Matrix<const T> x,
                            Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias) {
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::linear_backward_weight(context, dy, x, dw, dbias);
  portable::linear_backward_weight<T>(context, dy, x, dw, dbias);
}

template <class T>
void norm_forward(const Context& context, Norm norm, Matrix<const T> x, Vector<const T> gain,
                  Vector<const T> bias, double eps, Matrix<T> y, Vector<Accumulate<T>> mean,
                  Vector<Accumulate<T>> rstd) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::norm_forward(context, norm, x, gain, bias, eps, y, mean, rstd);
  portable::norm_forward<T>(context, norm, x, gain, bias, eps, y, mean, rstd);
}

template <class T>
void norm_backward(const Context& context, Norm norm, Matrix<const T> dy, Matrix<const T> x,
                   Vector<const T> gain, Vector<const Accumulate<T>> mean,
                   Vector<const Accumulate<T>> rstd, Matrix<T> dx, Write write,
                   Vector<Accumulate<T>> dgain, Vector<Accumulate<T>> dbias,
                   Vector<Accumulate<T>> partial) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::norm_backward(context, norm, dy, x, gain, mean, rstd, dx, write, dgain, dbias,
                                 partial);
  portable::norm_backward<T>(context, norm, dy, x, gain, mean, rstd, dx, write, dgain, dbias,
                             partial);
}

template <class T>
void activation_forward(const Context& context, Activation kind, Matrix<const T> x, Matrix<T> y) {
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::activation_forward(context, kind, x, y);
  portable::activation_forward<T>(context, kind, x, y);
}

template <class T>
void activation_backward(const Context& context, Activation kind, Matrix<const T> x,
                         Matrix<const T> dy, Matrix<T> dx) {
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::activation_backward(context, kind, x, dy, dx);
  portable::activation_backward<T>(context, kind, x, dy, dx);
}

template <class T>
void dropout(const Context& context, const DropoutKey& key, Matrix<T> x) {
  portable::dropout<T>(context, key, x);
}

template <class T>
void add(const Context& context, Matrix<const T> x, Matrix<T> y) {
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::add(context, x, y);
  portable::add<T>(context, x, y);
}

template <class T>
void sum(const Context& context, Matrix<const T> a, Matrix<const T> b, Matrix<const T> c,
         Matrix<T> to) {
  for (const Matrix<const T>& term : {a, b, c})
    TERN_REQUIRE(term.extent(0) == 0 || ((term.extent(0) == 1 || term.extent(0) == to.extent(0)) &&
                                         term.extent(1) == to.extent(1)),
                 "({}, {}) in a sum of ({}, {})", term.extent(0), term.extent(1), to.extent(0),
                 to.extent(1));
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::sum(context, a, b, c, to);
  portable::sum<T>(context, a, b, c, to);
}

template <class T>
void column_sums(const Context& context, Matrix<const T> x, Vector<Accumulate<T>> sums) {
  TERN_REQUIRE(sums.size() == x.extent(1), "{} sums of {} columns", sums.size(), x.extent(1));
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::column_sums(context, x, sums);
  portable::column_sums<T>(context, x, sums);
}

template <class From, class To>
void convert(const Context& context, Vector<const From> from, Vector<To> to) {
  if constexpr ((detail::accelerated<From> && std::is_same_v<To, float>) ||
                (detail::accelerated<To> && std::is_same_v<From, float>))
    if (context.library) return cuda::convert(context, from, to);
  portable::convert<From, To>(context, from, to);
}

template <class T>
void embedding_forward(const Context& context, Vector<const std::int32_t> tokens,
                       Matrix<const T> table, Matrix<const T> positions,
                       std::size_t tokens_per_sequence, int first, Matrix<T> x) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::embedding_forward(context, tokens, table, positions, tokens_per_sequence, first,
                                     x);
  portable::embedding_forward<T>(context, tokens, table, positions, tokens_per_sequence, first, x);
}

template <class T>
void embedding_add(const Context& context, Vector<const std::int32_t> rows, Matrix<const T> table,
                   Matrix<T> x) {
  portable::embedding_add<T>(context, rows, table, x);
}

template <class T>
void embedding_backward(const Context& context, Vector<const std::int32_t> tokens,
                        Vector<const std::int32_t> order, Matrix<const T> dx,
                        std::size_t tokens_per_sequence, Matrix<Accumulate<T>> dtable,
                        Matrix<Accumulate<T>> dpositions) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::embedding_backward(context, tokens, order, dx, tokens_per_sequence, dtable,
                                      dpositions);
  portable::embedding_backward<T>(context, tokens, order, dx, tokens_per_sequence, dtable,
                                  dpositions);
}

template <class T>
void head_loss_forward(const Context& context, const HeadOptions& options, Matrix<const T> x,
                       Matrix<const T> w, Vector<const std::int32_t> targets, Matrix<T> logits,
                       Vector<Accumulate<T>> losses, Vector<std::int32_t> best) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::head_loss_forward(context, options, x, w, targets, logits, losses, best);
  portable::head_loss_forward<T>(context, options, x, w, targets, logits, losses, best);
}

template <class T>
void scatter_rows(const Context& context, Vector<const std::int32_t> rows, Matrix<const T> from,
                  Matrix<T> to) {
  portable::scatter_rows<T>(context, rows, from, to);
}

template <class T>
void argmax_rows(const Context& context, Matrix<const T> logits, std::size_t vocabulary,
                 Vector<std::int32_t> best) {
  portable::argmax_rows<T>(context, logits, vocabulary, best);
}

template <class T>
void cap_logits(const Context& context, double cap, Matrix<T> logits) {
  portable::cap_logits<T>(context, cap, logits);
}

template <class T>
void head_loss_backward(const Context& context, const HeadOptions& options, Matrix<const T> x,
                        Matrix<const T> w, Vector<const std::int32_t> targets,
                        Vector<const Accumulate<T>> weights, Matrix<T> logits,
                        Vector<Accumulate<T>> losses, Matrix<T> dx, Matrix<Accumulate<T>> dw) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::head_loss_backward(context, options, x, w, targets, weights, logits, losses, dx,
                                      dw);
  portable::head_loss_backward<T>(context, options, x, w, targets, weights, logits, losses, dx, dw);
}

template <class A>
void weighted_sum(const Context& context, Vector<const A> values, Vector<const A> weights,
                  Vector<A> result) {
  portable::weighted_sum<A>(context, values, weights, result);
}

template <class A>
void improvement_weights(const Context& context, double unit, double base, double reward,
                         Vector<const A> losses, Vector<const std::int32_t> targets,
                         std::size_t tokens, Vector<A> weights) {
  portable::improvement_weights<A>(context, unit, base, reward, losses, targets, tokens, weights);
}

template <class A>
void sum_of_squares(const Context& context, Vector<const A> values, Vector<A> result) {
  portable::sum_of_squares<A>(context, values, result);
}

template <class T>
void adamw_update(const Context& context, const AdamW& options, Vector<Accumulate<T>> master,
                  Vector<const Accumulate<T>> gradient, Vector<const Accumulate<T>> gradient_scale,
                  Vector<Accumulate<T>> m, Vector<Accumulate<T>> v, Vector<T> copy) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::adamw_update(context, options, master, gradient, gradient_scale, m, v, copy);
  portable::adamw_update<T>(context, options, master, gradient, gradient_scale, m, v, copy);
}

template <class A>
void nesterov(const Context& context, double momentum, Vector<A> gradient,
              Vector<const A> gradient_scale, Vector<A> buffer) {
  portable::nesterov<A>(context, momentum, gradient, gradient_scale, buffer);
}

template <class A>
void move_average(const Context& context, double decay, Vector<const A> values, Vector<A> average) {
  portable::move_average<A>(context, decay, values, average);
}

template <class A>
void exchange(const Context& context, Vector<A> a, Vector<A> b) {
  portable::exchange<A>(context, a, b);
}

template <class A>
void clip_scale(const Context& context, Vector<const A> squares, double limit, Vector<A> scale,
                Vector<A> norm) {
  portable::clip_scale<A>(context, squares, limit, scale, norm);
}

#define INSTANTIATE(T)                                                                            \
  template void linear_forward<T>(const Context&, Matrix<const T>, Matrix<const T>,               \
                                  Vector<const T>, Matrix<T>, Write);                             \
  template void linear_backward_input<T>(const Context&, Matrix<const T>, Matrix<const T>,        \
                                         Matrix<T>, Write);                                       \
  template void linear_backward_weight<T>(const Context&, Matrix<const T>, Matrix<const T>,       \
                                          Matrix<Accumulate<T>>, Vector<Accumulate<T>>);          \
  template void norm_forward<T>(const Context&, Norm, Matrix<const T>, Vector<const T>,           \
                                Vector<const T>, double, Matrix<T>, Vector<Accumulate<T>>,        \
                                Vector<Accumulate<T>>);                                           \
  template void norm_backward<T>(                                                                 \
      const Context&, Norm, Matrix<const T>, Matrix<const T>, Vector<const T>,                    \
      Vector<const Accumulate<T>>, Vector<const Accumulate<T>>, Matrix<T>, Write,                 \
      Vector<Accumulate<T>>, Vector<Accumulate<T>>, Vector<Accumulate<T>>);                       \
  template void activation_forward<T>(const Context&, Activation, Matrix<const T>, Matrix<T>);    \
  template void activation_backward<T>(const Context&, Activation, Matrix<const T>,               \
                                       Matrix<const T>, Matrix<T>);                               \
  template void dropout<T>(const Context&, const DropoutKey&, Matrix<T>);                         \
  template void add<T>(const Context&, Matrix<const T>, Matrix<T>);                               \
  template void sum<T>(const Context&, Matrix<const T>, Matrix<const T>, Matrix<const T>,         \
                       Matrix<T>);                                                                \
  template void column_sums<T>(const Context&, Matrix<const T>, Vector<Accumulate<T>>);           \
  template void cap_logits<T>(const Context&, double, Matrix<T>);                                 \
  template void convert<T, float>(const Context&, Vector<const T>, Vector<float>);                \
  template void convert<T, double>(const Context&, Vector<const T>, Vector<double>);              \
  template void convert<T, bf16>(const Context&, Vector<const T>, Vector<bf16>);                  \
  template void embedding_add<T>(const Context&, Vector<const std::int32_t>, Matrix<const T>,     \
                                 Matrix<T>);                                                      \
  template void embedding_forward<T>(const Context&, Vector<const std::int32_t>, Matrix<const T>, \
                                     Matrix<const T>, std::size_t, int, Matrix<T>);               \
  template void embedding_backward<T>(const Context&, Vector<const std::int32_t>,                 \
                                      Vector<const std::int32_t>, Matrix<const T>, std::size_t,   \
                                      Matrix<Accumulate<T>>, Matrix<Accumulate<T>>);              \
  template void head_loss_forward<T>(const Context&, const HeadOptions&, Matrix<const T>,         \
                                     Matrix<const T>, Vector<const std::int32_t>, Matrix<T>,      \
                                     Vector<Accumulate<T>>, Vector<std::int32_t>);                \
  template void scatter_rows<T>(const Context&, Vector<const std::int32_t>, Matrix<const T>,      \
                                Matrix<T>);                                                       \
  template void argmax_rows<T>(const Context&, Matrix<const T>, std::size_t,                      \
                               Vector<std::int32_t>);                                             \
  template void head_loss_backward<T>(const Context&, const HeadOptions&, Matrix<const T>,        \
                                      Matrix<const T>, Vector<const std::int32_t>,                \
                                      Vector<const Accumulate<T>>, Matrix<T>,                     \
                                      Vector<Accumulate<T>>, Matrix<T>, Matrix<Accumulate<T>>);   \
  template void adamw_update<T>(const Context&, const AdamW&, Vector<Accumulate<T>>,              \
                                Vector<const Accumulate<T>>, Vector<const Accumulate<T>>,         \
                                Vector<Accumulate<T>>, Vector<Accumulate<T>>, Vector<T>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

#define INSTANTIATE_SUMS(A)                                                                     \
  template void weighted_sum<A>(const Context&, Vector<const A>, Vector<const A>, Vector<A>);   \
  template void sum_of_squares<A>(const Context&, Vector<const A>, Vector<A>);                  \
  template void improvement_weights<A>(const Context&, double, double, double, Vector<const A>, \
                                       Vector<const std::int32_t>, std::size_t, Vector<A>);     \
  template void nesterov<A>(const Context&, double, Vector<A>, Vector<const A>, Vector<A>);     \
  template void move_average<A>(const Context&, double, Vector<const A>, Vector<A>);            \
  template void exchange<A>(const Context&, Vector<A>, Vector<A>);                              \
  template void clip_scale<A>(const Context&, Vector<const A>, double, Vector<A>, Vector<A>);
INSTANTIATE_SUMS(float)
INSTANTIATE_SUMS(double)

}  // namespace tern::ops
