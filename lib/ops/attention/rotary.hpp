/// Rotary position embedding (Su et al. 2021; halves rotated, as in Transformers). Conventions:
/// ops.hpp.
#pragma once
#include "ops/elementwise/fp8_matrix.hpp"

namespace tern::ops {

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
}  // namespace tern::ops
