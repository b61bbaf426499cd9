/// AdamW and Muon updates (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural
/// networks"), EMA and gradient clipping. Conventions: ops.hpp.
#pragma once
#include "ops/core/operation.hpp"

namespace tern::ops {

struct AdamW {  // Loshchilov & Hutter 2019, decoupled decay: w -= lr * decay * w
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t step;  // from 1, for the bias corrections
};
template <class T>
struct AdamWUpdate {
  static constexpr Traits traits{.name = "tern::adamw_update", .native = is_half<T>};
  AdamW rule;
  Vector<Accumulate<T>> master;                // (n), updated like m and v
  Vector<const Accumulate<T>> gradient;        // (n)
  Vector<const Accumulate<T>> gradient_scale;  // (1), clipping factor; 0 or NaN skips the step
  Vector<Accumulate<T>> m, v;                  // (n)
  Vector<T> copy = {};  // (n), new master in storage type; empty, or the master itself for float

  void check() const;
  double bytes() const { return 2 * bytes_of(master, m, v) + bytes_of(gradient, copy); }
  static void portable(const Context&, const AdamWUpdate&);
  static bool native(const Context&, const AdamWUpdate&);
};

/// Of gradients that are `loss_scale` times too large, whose sum of squares is `squares` (1):
/// norm (1) = sqrt(squares) / loss_scale; scale (1) = min(1, limit / norm) / loss_scale
/// (1 / loss_scale if limit is 0), 0 where squares is not finite.
template <class A>
struct ClipScale {
  static constexpr Traits traits{.name = "tern::clip_scale"};
  Vector<const A> squares;
  double limit;
  double loss_scale;
  Vector<A> scale, norm;

  double bytes() const { return bytes_of(squares, scale, norm); }
  static void portable(const Context&, const ClipScale&);
};

/// average (n) += (1 - decay) (values - average): an exponential moving average.
template <class A>
struct MoveAverage {
  static constexpr Traits traits{.name = "tern::move_average"};
  double decay;
  Vector<const A> values;
  Vector<A> average;

  double bytes() const { return bytes_of(values) + 2 * bytes_of(average); }
  static void portable(const Context&, const MoveAverage&);
};

/// Swaps a (n) and b (n).
template <class A>
struct Exchange {
  static constexpr Traits traits{.name = "tern::exchange"};
  Vector<A> a, b;

  double bytes() const { return 2 * bytes_of(a, b); }
  static void portable(const Context&, const Exchange&);
};

// ---- Muon: batches of M matrices of R x C; its products are batched_product (linear.hpp).
// Parameter matrix i begins at element at(i) of a span; matrices do not overlap. A matrix's result
// does not depend on the rest of its batch.

/// Nesterov momentum, all (n) but gradient_scale (1): g = gradient_scale * gradient;
/// buffer += (1 - momentum) (g - buffer); then gradient = g + momentum (buffer - g), as in
/// torch.optim.Muon. A gradient_scale of 0 or NaN changes nothing.
template <class A>
struct Nesterov {
  static constexpr Traits traits{.name = "tern::nesterov"};
  double momentum;
  Vector<A> gradient;
  Vector<const A> gradient_scale;
  Vector<A> buffer;

  double bytes() const { return 2 * bytes_of(gradient, buffer); }
  static void portable(const Context&, const Nesterov&);
};

/// squares (M) = sum of squares of each of the span's matrices, of `elements` elements each.
template <class A>
struct SumsOfSquares {
  static constexpr Traits traits{.name = "tern::sums_of_squares"};
  Vector<const A> span;
  Vector<const std::size_t> at;
  std::size_t elements;
  Vector<A> squares;

  double bytes() const { return static_cast<double>(at.size() * elements * sizeof(A)); }
  static void portable(const Context&, const SumsOfSquares&);
};

/// to (M, R, C) = the span's matrices, each divided by max(sqrt(squares), eps); squares (M).
template <class T>
struct Normalize {
  static constexpr Traits traits{.name = "tern::normalize"};
  Vector<const Accumulate<T>> span;
  Vector<const std::size_t> at;
  Vector<const Accumulate<T>> squares;
  double eps;
  Tensor3<T> to;

  double bytes() const { return bytes_of(to) * (1 + 1.0 * sizeof(Accumulate<T>) / sizeof(T)); }
  static void portable(const Context&, const Normalize&);
};

/// Each matrix of the master span = keep * master - step * direction.
template <class T, class S>
struct Descent {
  static constexpr Traits traits{.name = "tern::descend"};
  double keep, step;
  Tensor3<const S> direction;                  // (M, R, C)
  Vector<const std::size_t> at;                // (M)
  Vector<const Accumulate<T>> gradient_scale;  // (1); 0 or NaN skips the step
  Vector<Accumulate<T>> master;
  Vector<T> copy = {};  // new master in storage type; empty, or the master itself for float

  static void portable(const Context&, const Descent&);
};

}  // namespace tern::ops
