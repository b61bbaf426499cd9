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

template <class T>
struct AttentionForward {
  Pattern pattern = {};
  double scale;
  Heads<const T> q;           // (B, Tq, H, E)
  Heads<const T> k, v;        // (B, Tk, K, E), H a multiple of K (grouped queries)
  Heads<T> out;               // (B, Tq, H, E)
  Matrix<Accumulate<T>> lse;  // (B*H, Tq): log-sum-exp of the scores, for backward
};
/// out = softmax(scale q k^T) v over the pairs that `pattern` allows; a query that attends to
/// nothing gives zeros. No Tq x Tk matrix is stored.
template <class T>
void attention_forward(const Context&, const AttentionForward<T>&);

template <class T>
struct AttentionBackward {
  Pattern pattern = {};
  double scale;
  Heads<const T> q, k, v, out, dout;
  Matrix<const Accumulate<T>> lse;
  Matrix<Accumulate<T>> delta;  // (B*H, Tq): workspace
  Heads<T> dq, dk, dv;          // shaped as q, k, v
  /// Of q and k, with a position for each query; dq and dk are then gradients of the heads before
  /// it.
  HeadRotation<Accumulate<T>> rotation = {};
};
template <class T>
void attention_backward(const Context&, const AttentionBackward<T>&);
/// The rotation's part of it, after a kernel that leaves it out.
template <class T>
void undo_rotation(const Context& context, const AttentionBackward<T>& call) {
  if (!call.rotation.wanted()) return;
  for (const auto& gradient : std::array{call.dq, call.dk})
    rotary<T>(context, gradient, call.rotation.table, call.rotation.positions, Direction::backward);
}
/// Of one product over the allowed pairs of q (B, T, H, E); 0 for spans, which the device knows.
template <class T>
double attention_product_flops(const Pattern& pattern, const Heads<T>& q) {
  if (pattern.kind == Pattern::Kind::spans) return 0;
  return 2 * pattern.pairs(static_cast<double>(q.extent(1))) *
         static_cast<double>(q.extent(0) * q.extent(2) * q.extent(3));
}

template <class T>
bool native_attention_forward(const Context& context, const AttentionForward<T>& call);
template <>
inline constexpr auto native_kernel<&attention_forward<bf16>> =
    native_entry("tern::attention_forward", native_attention_forward<bf16>);
template <>
inline constexpr auto native_kernel<&attention_forward<fp16>> =
    native_entry("tern::attention_forward", native_attention_forward<fp16>);
template <>
inline constexpr auto native_kernel<&attention_forward<float>> =
    native_entry("tern::attention_forward", native_attention_forward<float>);
template <>
struct Flops<&attention_forward<bf16>> {
  double operator()(const auto& c) const { return 2 * attention_product_flops(c.pattern, c.q); }
};
template <>
struct Flops<&attention_forward<fp16>> : Flops<&attention_forward<bf16>> {};
template <>
struct Flops<&attention_forward<float>> : Flops<&attention_forward<bf16>> {};
template <class T>
bool native_attention_backward(const Context& context, const AttentionBackward<T>& call);
template <>
inline constexpr auto native_kernel<&attention_backward<bf16>> =
    native_entry("tern::attention_backward", native_attention_backward<bf16>);
template <>
inline constexpr auto native_kernel<&attention_backward<fp16>> =
    native_entry("tern::attention_backward", native_attention_backward<fp16>);
template <>
inline constexpr auto native_kernel<&attention_backward<float>> =
    native_entry("tern::attention_backward", native_attention_backward<float>);
template <>
struct Flops<&attention_backward<bf16>> {
  double operator()(const auto& c) const { return 5 * attention_product_flops(c.pattern, c.q); }
};
template <>
struct Flops<&attention_backward<fp16>> : Flops<&attention_backward<bf16>> {};
template <>
struct Flops<&attention_backward<float>> : Flops<&attention_backward<bf16>> {};

}  // namespace tern::ops
