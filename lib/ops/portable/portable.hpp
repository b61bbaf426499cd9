/// The reference implementation of every operation of ops.hpp, by Kokkos and Kokkos Kernels, for
/// every backend. Signatures and contracts are those of ops.hpp. Each function is instantiated for
/// T in {float, double, bf16} (reductions and clip_scale: A in {float, double}; convert: all
/// pairs).
#pragma once
#include "ops/ops.hpp"

namespace tern::ops::portable {

// linear
template <class T>
void linear_forward(const Context&, Matrix<const T> x, Matrix<const T> w, Vector<const T> bias,
                    Matrix<T> y, Write = Write::overwrite);
template <class T>
void linear_backward_input(const Context&, Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx,
                           Write = Write::overwrite);
template <class T>
void linear_backward_weight(const Context&, Matrix<const T> dy, Matrix<const T> x,
                            Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias);

// norm
template <class T>
void norm_forward(const Context&, Norm, Matrix<const T> x, Vector<const T> gain,
                  Vector<const T> bias, double eps, Matrix<T> y, Vector<Accumulate<T>> mean,
                  Vector<Accumulate<T>> rstd);
template <class T>
void norm_backward(const Context&, Norm, Matrix<const T> dy, Matrix<const T> x,
                   Vector<const T> gain, Vector<const Accumulate<T>> mean,
                   Vector<const Accumulate<T>> rstd, Matrix<T> dx, Write,
                   Vector<Accumulate<T>> dgain, Vector<Accumulate<T>> dbias,
                   Vector<Accumulate<T>> partial);
template <class T>
void head_norm_forward(const Context&, Heads<T> x, Vector<const T> gain, double eps,
                       Matrix<T> saved, Vector<Accumulate<T>> rstd);
template <class T>
void head_norm_backward(const Context&, Heads<T> dx, Matrix<const T> saved, Vector<const T> gain,
                        Vector<const Accumulate<T>> rstd, Vector<Accumulate<T>> dgain,
                        Vector<Accumulate<T>> partial);

// rotary position embedding
template <class T>
void rotary_table(const Context&, double base, Matrix<T> table);
template <class T>
void rotary(const Context&, Heads<T> x, Matrix<const Accumulate<T>> table, const Positions&,
            Direction);

// attention
template <class T>
void attention_forward(const Context&, const Pattern& pattern, double scale, Heads<const T> q,
                       Heads<const T> k, Heads<const T> v, Heads<T> out, Matrix<Accumulate<T>> lse);
template <class T>
void attention_backward(const Context&, const Pattern& pattern, double scale, Heads<const T> q,
                        Heads<const T> k, Heads<const T> v, Heads<const T> out, Heads<const T> dout,
                        Matrix<const Accumulate<T>> lse, Matrix<Accumulate<T>> delta, Heads<T> dq,
                        Heads<T> dk, Heads<T> dv);

// activation
template <class T>
void activation_forward(const Context&, Activation, Matrix<const T> x, Matrix<T> y);
template <class T>
void activation_backward(const Context&, Activation, Matrix<const T> x, Matrix<const T> dy,
                         Matrix<T> dx);

// dropout
template <class T>
void dropout(const Context&, const DropoutKey&, Matrix<T> x);

// elementwise
template <class T>
void add(const Context&, Matrix<const T> x, Matrix<T> y);
template <class T>
void sum(const Context&, Matrix<const T> a, Matrix<const T> b, Matrix<const T> c, Matrix<T> to);
template <class T>
void column_sums(const Context&, Matrix<const T> x, Vector<Accumulate<T>> sums);
template <class From, class To>
void convert(const Context&, Vector<const From> from, Vector<To> to);

// embedding
template <class T>
void embedding_forward(const Context&, Vector<const std::int32_t> tokens, Matrix<const T> table,
                       Matrix<const T> positions, std::size_t tokens_per_sequence, int first,
                       Matrix<T> x);
template <class T>
void embedding_add(const Context&, Vector<const std::int32_t> rows, Matrix<const T> table,
                   Matrix<T> x);
template <class T>
void embedding_backward(const Context&, Vector<const std::int32_t> tokens,
                        Vector<const std::int32_t> order, Matrix<const T> dx,
                        std::size_t tokens_per_sequence, Matrix<Accumulate<T>> dtable,
                        Matrix<Accumulate<T>> dpositions);

// head and loss, fused in chunks of rows
template <class T>
void head_loss_forward(const Context&, const HeadOptions&, Matrix<const T> x, Matrix<const T> w,
                       Vector<const std::int32_t> targets, Matrix<T> logits,
                       Vector<Accumulate<T>> losses, Vector<std::int32_t> best = {});
template <class T>
void scatter_rows(const Context&, Vector<const std::int32_t> rows, Matrix<const T> from,
                  Matrix<T> to);
template <class T>
void argmax_rows(const Context&, Matrix<const T> logits, std::size_t vocabulary,
                 Vector<std::int32_t> best);
template <class T>
void cap_logits(const Context&, double cap, Matrix<T> logits);
template <class T>
void head_loss_backward(const Context&, const HeadOptions&, Matrix<const T> x, Matrix<const T> w,
                        Vector<const std::int32_t> targets, Vector<const Accumulate<T>> weights,
                        Matrix<T> logits, Vector<Accumulate<T>> losses, Matrix<T> dx,
                        Matrix<Accumulate<T>> dw);

// reductions
template <class A>
void weighted_sum(const Context&, Vector<const A> values, Vector<const A> weights,
                  Vector<A> result);
template <class A>
void improvement_weights(const Context&, double unit, double base, double reward,
                         Vector<const A> losses, Vector<const std::int32_t> targets,
                         std::size_t tokens, Vector<A> weights);
template <class A>
void sum_of_squares(const Context&, Vector<const A> values, Vector<A> result);

// optimizer updates
template <class T>
void adamw_update(const Context&, const AdamW&, Vector<Accumulate<T>> master,
                  Vector<const Accumulate<T>> gradient, Vector<const Accumulate<T>> gradient_scale,
                  Vector<Accumulate<T>> m, Vector<Accumulate<T>> v, Vector<T> copy);
template <class A>
void nesterov(const Context&, double momentum, Vector<A> gradient, Vector<const A> gradient_scale,
              Vector<A> buffer);
template <class A>
void move_average(const Context&, double decay, Vector<const A> values, Vector<A> average);
template <class A>
void exchange(const Context&, Vector<A> a, Vector<A> b);
template <class A>
void clip_scale(const Context&, Vector<const A> squares, double limit, Vector<A> scale,
                Vector<A> norm);

// sampling
template <class T>
void sample(const Context&, const Sampling&, Matrix<const T> logits, std::size_t vocabulary,
            Vector<const std::int32_t> request, int position, Vector<std::int32_t> token);

}  // namespace tern::ops::portable
