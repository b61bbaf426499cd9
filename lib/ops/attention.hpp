/// Rotary position embedding and attention. Conventions: ops.hpp.
#pragma once
#include <array>

#include "ops/fp8_matrix.hpp"
#include "ops/pattern.hpp"

namespace tern::ops {

// ---- rotary position embedding (Su et al. 2021; halves rotated, as in Transformers)

/// table (context, E): cosines of the E/2 angles, then their sines.
template <class T>
void rotary_table(const Context&, double base, Matrix<T> table);
enum class Direction { forward, backward };  // backward rotates by the opposite angle
/// Positions of the rows of a pass: `first + t` for row t of every sequence, or `rows` (B*T), which
/// must be within the table.
struct Positions {
  int first = 0;
  Vector<const std::int32_t> rows = {};
};
/// In place. x (B, T, heads, E).
template <class T>
void rotary(const Context&, Heads<T> x, Matrix<const Accumulate<T>> table, const Positions&,
            Direction);

/// rotary backward of the first `heads` heads of size E of dqkv (N, width), rounded to fp8 whole.
/// Rows are those of N / tokens sequences.
template <class T>
void rotary_backward_to_fp8(const Context&, Matrix<T> dqkv, std::size_t tokens, std::size_t heads,
                            Matrix<const Accumulate<T>> table, const Positions&,
                            const Fp8Matrix& rounded);

/// A rotation that backward undoes, or none.
template <class A>
struct HeadRotation {
  Matrix<const A> table = {};
  Positions positions = {};
  bool wanted() const { return table.size() > 0; }
};

// ---- attention (online softmax; Dao et al. 2022)

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
bool native_rotary(const Context& context, Heads<T> x, Matrix<const float> table,
                   const Positions& positions, Direction direction);
template <>
inline constexpr auto native_kernel<&rotary<bf16>> = native_entry("tern::rotary",
                                                                  native_rotary<bf16>);
template <>
inline constexpr auto native_kernel<&rotary<fp16>> = native_entry("tern::rotary",
                                                                  native_rotary<fp16>);
template <>
struct Traffic<&rotary<bf16>> {
  double operator()(const auto& x, const auto&, const Positions&, Direction) const {
    return 2 * bytes_of(x);
  }
};
template <>
struct Traffic<&rotary<fp16>> : Traffic<&rotary<bf16>> {};
NativeKernel<&rotary_backward_to_fp8<bf16>> native_rotary_backward_to_fp8;
template <>
inline constexpr auto native_kernel<&rotary_backward_to_fp8<bf16>> =
    native_entry("tern::rotary_backward_to_fp8", native_rotary_backward_to_fp8);
template <>
struct Traffic<&rotary_backward_to_fp8<bf16>> {
  double operator()(const auto& dqkv, std::size_t, std::size_t, const auto&, const Positions&,
                    const Fp8Matrix& rounded) const {
    return bytes_of(dqkv) + result_bytes(dqkv, rounded);
  }
};
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
