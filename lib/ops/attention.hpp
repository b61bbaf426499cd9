/// Rotary position embedding and attention. Conventions: ops.hpp.
#pragma once
#include "ops/native.hpp"
#include "ops/pattern.hpp"

namespace tern::ops {

// ---- rotary position embedding (Su et al. 2021; halves rotated, as in Transformers)

/// table (context, E): cosines of the E/2 angles, then their sines.
template <class T>
void rotary_table(const Context&, double base, Matrix<T> table);
enum class Direction { forward, backward };  // backward rotates by the opposite angle
/// Where the rows of a pass stand: row t of every sequence at `first + t`, or as `rows` (B*T) says.
/// A position in `rows` must be one of the table's.
struct Positions {
  int first = 0;
  Vector<const std::int32_t> rows = {};
};
/// In place. x (B, T, heads, E).
template <class T>
void rotary(const Context&, Heads<T> x, Matrix<const Accumulate<T>> table, const Positions&,
            Direction);

// ---- attention (online softmax; Dao et al. 2022)

/// q, out (B, Tq, H, E); k, v (B, Tk, K, E), H a multiple of K (grouped queries); lse (B*H, Tq):
/// log of the softmax's denominator, for backward. out = softmax(scale q k^T) v over the pairs that
/// `pattern` allows; a query that may see nothing gives zeros. No Tq x Tk matrix is ever stored.
template <class T>
void attention_forward(const Context&, const Pattern& pattern, double scale, Heads<const T> q,
                       Heads<const T> k, Heads<const T> v, Heads<T> out, Matrix<Accumulate<T>> lse);
/// dq, dk, dv shaped as q, k, v; delta (B*H, Tq): workspace.
template <class T>
void attention_backward(const Context&, const Pattern& pattern, double scale, Heads<const T> q,
                        Heads<const T> k, Heads<const T> v, Heads<const T> out, Heads<const T> dout,
                        Matrix<const Accumulate<T>> lse, Matrix<Accumulate<T>> delta, Heads<T> dq,
                        Heads<T> dk, Heads<T> dv);

Twin<&rotary<bf16>> native_rotary;
template <>
inline constexpr auto twin<&rotary<bf16>> = in_cuda("tern::rotary", native_rotary);
Twin<&attention_forward<bf16>> native_attention_forward;
template <>
inline constexpr auto twin<&attention_forward<bf16>> = in_cuda("tern::attention_forward",
                                                               native_attention_forward);
Twin<&attention_backward<bf16>> native_attention_backward;
template <>
inline constexpr auto twin<&attention_backward<bf16>> = in_cuda("tern::attention_backward",
                                                                native_attention_backward);

}  // namespace tern::ops
