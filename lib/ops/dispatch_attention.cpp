// Each operation of ops.hpp goes to its cuda:: twin where there is one for its storage type and the
// context has the libraries, and to the portable one otherwise. The rest: dispatch.cpp.
#include "ops/detail/dispatch.hpp"

namespace tern::ops {

template <class T>
void head_norm_forward(const Context& context, Heads<T> x, Vector<const T> gain, double eps,
                       Matrix<T> saved, Vector<Accumulate<T>> rstd) {
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::head_norm_forward(context, x, gain, eps, saved, rstd);
  portable::head_norm_forward<T>(context, x, gain, eps, saved, rstd);
}

template <class T>
void head_norm_backward(const Context& context, Heads<T> dx, Matrix<const T> saved,
                        Vector<const T> gain, Vector<const Accumulate<T>> rstd,
                        Vector<Accumulate<T>> dgain, Vector<Accumulate<T>> partial) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::head_norm_backward(context, dx, saved, gain, rstd, dgain, partial);
  portable::head_norm_backward<T>(context, dx, saved, gain, rstd, dgain, partial);
}

template <class T>
void rotary_table(const Context& context, double base, Matrix<T> table) {
  portable::rotary_table<T>(context, base, table);
}

template <class T>
void rotary(const Context& context, Heads<T> x, Matrix<const Accumulate<T>> table,
            const Positions& positions, Direction direction) {
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::rotary(context, x, table, positions, direction);
  portable::rotary<T>(context, x, table, positions, direction);
}

template <class T>
void attention_forward(const Context& context, const Pattern& pattern, double scale,
                       Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<T> out,
                       Matrix<Accumulate<T>> lse) {
  if constexpr (detail::accelerated<T>)
    if (context.library) return cuda::attention_forward(context, pattern, scale, q, k, v, out, lse);
  portable::attention_forward<T>(context, pattern, scale, q, k, v, out, lse);
}

template <class T>
void attention_backward(const Context& context, const Pattern& pattern, double scale,
                        Heads<const T> q, Heads<const T> k, Heads<const T> v, Heads<const T> out,
                        Heads<const T> dout, Matrix<const Accumulate<T>> lse,
                        Matrix<Accumulate<T>> delta, Heads<T> dq, Heads<T> dk, Heads<T> dv) {
  if constexpr (detail::accelerated<T>)
    if (context.library)
      return cuda::attention_backward(context, pattern, scale, q, k, v, out, dout, lse, delta, dq,
                                      dk, dv);
  portable::attention_backward<T>(context, pattern, scale, q, k, v, out, dout, lse, delta, dq, dk,
                                  dv);
}

template <class T>
void sample(const Context& context, const Sampling& options, Matrix<const T> logits,
            std::size_t vocabulary, Vector<const std::int32_t> request, int position,
            Vector<std::int32_t> token) {
  portable::sample<T>(context, options, logits, vocabulary, request, position, token);
}

#define INSTANTIATE(T)                                                                             \
  template void head_norm_forward<T>(const Context&, Heads<T>, Vector<const T>, double, Matrix<T>, \
                                     Vector<Accumulate<T>>);                                       \
  template void head_norm_backward<T>(const Context&, Heads<T>, Matrix<const T>, Vector<const T>,  \
                                      Vector<const Accumulate<T>>, Vector<Accumulate<T>>,          \
                                      Vector<Accumulate<T>>);                                      \
  template void rotary<T>(const Context&, Heads<T>, Matrix<const Accumulate<T>>, const Positions&, \
                          Direction);                                                              \
  template void attention_forward<T>(const Context&, const Pattern&, double, Heads<const T>,       \
                                     Heads<const T>, Heads<const T>, Heads<T>,                     \
                                     Matrix<Accumulate<T>>);                                       \
  template void attention_backward<T>(const Context&, const Pattern&, double, Heads<const T>,      \
                                      Heads<const T>, Heads<const T>, Heads<const T>,              \
                                      Heads<const T>, Matrix<const Accumulate<T>>,                 \
                                      Matrix<Accumulate<T>>, Heads<T>, Heads<T>, Heads<T>);        \
  template void sample<T>(const Context&, const Sampling&, Matrix<const T>, std::size_t,           \
                          Vector<const std::int32_t>, int, Vector<std::int32_t>);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

#define INSTANTIATE_SUMS(A) template void rotary_table<A>(const Context&, double, Matrix<A>);
INSTANTIATE_SUMS(float)
INSTANTIATE_SUMS(double)

}  // namespace tern::ops
