/// AdamW and Muon updates (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural
/// networks"), EMA and gradient clipping. Conventions: ops.hpp.
#pragma once
#include "ops/core/native.hpp"

namespace tern::ops {

struct AdamW {  // Loshchilov & Hutter 2019, decoupled decay: w -= lr * decay * w
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t step;  // from 1, for the bias corrections
};
template <class T>
struct AdamWUpdate {
  AdamW rule;
  Vector<Accumulate<T>> master;                // (n), updated like m and v
  Vector<const Accumulate<T>> gradient;        // (n)
  Vector<const Accumulate<T>> gradient_scale;  // (1), clipping factor; 0 or NaN skips the step
  Vector<Accumulate<T>> m, v;                  // (n)
  Vector<T> copy = {};  // (n), new master in storage type; empty, or the master itself for float
};
template <class T>
void adamw_update(const Context&, const AdamWUpdate<T>&);
// For profiles. Master weights and both moments are read and written.
template <class T>
double bytes_of(const AdamWUpdate<T>& c) {
  return 2 * (bytes_of(c.master) + bytes_of(c.m) + bytes_of(c.v)) + bytes_of(c.gradient) +
         bytes_of(c.copy);
}
/// Of gradients that are `loss_scale` times too large, whose sum of squares is `squares` (1):
/// norm (1) = sqrt(squares) / loss_scale; scale (1) = min(1, limit / norm) / loss_scale
/// (1 / loss_scale if limit is 0), 0 where squares is not finite.
template <class A>
void clip_scale(const Context&, Vector<const A> squares, double limit, double loss_scale,
                Vector<A> scale, Vector<A> norm);
/// average (n) += (1 - decay) (values - average): an exponential moving average.
template <class A>
void move_average(const Context&, double decay, Vector<const A> values, Vector<A> average);
/// Swaps a (n) and b (n).
template <class A>
void exchange(const Context&, Vector<A> a, Vector<A> b);

// ---- Muon: batches of M matrices of R x C; its products are batched_product (linear.hpp).
// Parameter matrix i begins at element at(i) of a span; matrices do not overlap. A matrix's result
// does not depend on the rest of its batch.

/// Nesterov momentum, all (n) but gradient_scale (1): g = gradient_scale * gradient;
/// buffer += (1 - momentum) (g - buffer); then gradient = g + momentum (buffer - g), as in
/// torch.optim.Muon. A gradient_scale of 0 or NaN changes nothing.
template <class A>
void nesterov(const Context&, double momentum, Vector<A> gradient, Vector<const A> gradient_scale,
              Vector<A> buffer);
/// squares (M) = sum of squares of each of the span's matrices, of `elements` elements each.
template <class A>
void sums_of_squares(const Context&, Vector<const A> span, Vector<const std::size_t> at,
                     std::size_t elements, Vector<A> squares);

/// to (M, R, C) = the span's matrices, each divided by max(sqrt(squares), eps); squares (M).
template <class T>
void normalize(const Context&, Vector<const Accumulate<T>> span, Vector<const std::size_t> at,
               Vector<const Accumulate<T>> squares, double eps, Tensor3<T> to);

template <class T, class S>
struct Descent {
  double keep, step;
  Tensor3<const S> direction;                  // (M, R, C)
  Vector<const std::size_t> at;                // (M)
  Vector<const Accumulate<T>> gradient_scale;  // (1); 0 or NaN skips the step
  Vector<Accumulate<T>> master;
  Vector<T> copy = {};  // new master in storage type; empty, or the master itself for float
};
/// Each matrix of the master span = keep * master - step * direction.
template <class T, class S>
void descend(const Context&, const Descent<T, S>&);

template <class T>
bool native_adamw_update(const Context& context, const AdamWUpdate<T>& call);
template <>
inline constexpr auto native_kernel<&adamw_update<bf16>> = native_entry("tern::adamw_update",
                                                                        native_adamw_update<bf16>);
template <>
inline constexpr auto native_kernel<&adamw_update<fp16>> = native_entry("tern::adamw_update",
                                                                        native_adamw_update<fp16>);

}  // namespace tern::ops
