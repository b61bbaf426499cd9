/// Attention (online softmax; Dao et al. 2022). Conventions: ops.hpp.
#pragma once
#include <array>

#include "ops/attention/pattern.hpp"
#include "ops/attention/rotary.hpp"

namespace tern::ops {

/// A rotation that backward undoes, or none.
template <class A>
struct HeadRotation {
  Matrix<const A> table = {};
  Positions positions = {};
  bool wanted() const { return table.size() > 0; }
};

/// Of one product over the allowed pairs of q (B, T, H, E); 0 for spans, which the device knows.
template <class T>
double attention_product_flops(const Pattern& pattern, const Heads<T>& q) {
  if (pattern.kind == Pattern::Kind::spans) return 0;
  return 2 * pattern.pairs(static_cast<double>(q.extent(1))) *
         static_cast<double>(q.extent(0) * q.extent(2) * q.extent(3));
}

/// out = softmax(scale q k^T) v over the pairs that `pattern` allows; a query that attends to
/// nothing gives zeros. No Tq x Tk matrix is stored.
template <class T>
struct AttentionForward {
  static constexpr Traits traits{.name = "tern::attention_forward",
                                 .native = !std::is_same_v<T, double>};
  Pattern pattern = {};
  double scale;
  Heads<const T> q;           // (B, Tq, H, E)
  Heads<const T> k, v;        // (B, Tk, K, E), H a multiple of K (grouped queries)
  Heads<T> out;               // (B, Tq, H, E)
  Matrix<Accumulate<T>> lse;  // (B*H, Tq): log-sum-exp of the scores, for backward

  void check() const;
  double flops() const { return 2 * attention_product_flops(pattern, q); }
  double bytes() const { return bytes_of(q, k, v, out, lse); }
  static void portable(const Context&, const AttentionForward&);
  static bool native(const Context&, const AttentionForward&);
};

template <class T>
struct AttentionBackward {
  static constexpr Traits traits{.name = "tern::attention_backward",
                                 .native = !std::is_same_v<T, double>};
  Pattern pattern = {};
  double scale;
  Heads<const T> q, k, v, out, dout;
  Matrix<const Accumulate<T>> lse;
  Matrix<Accumulate<T>> delta;  // (B*H, Tq): workspace
  Heads<T> dq, dk, dv;          // shaped as q, k, v
  /// Of q and k, with a position for each query; dq and dk are then gradients of the heads before
  /// it.
  HeadRotation<Accumulate<T>> rotation = {};

  void check() const;
  double flops() const { return 5 * attention_product_flops(pattern, q); }
  double bytes() const { return bytes_of(q, k, v, out, dout, lse, dq, dk, dv); }
  static void portable(const Context&, const AttentionBackward&);
  static bool native(const Context&, const AttentionBackward&);
};

/// The rotation's part of it, after a kernel that leaves it out.
template <class T>
void undo_rotation(const Context& context, const AttentionBackward<T>& call) {
  if (!call.rotation.wanted()) return;
  for (const auto& gradient : std::array{call.dq, call.dk})
    run(context, Rotary<T>{.x = gradient,
                           .table = call.rotation.table,
                           .positions = call.rotation.positions,
                           .direction = Direction::backward});
}

}  // namespace tern::ops
