/// Rotary position embedding (Su et al. 2021; halves rotated, as in Transformers). Conventions:
/// ops.hpp.
#pragma once
#include "ops/elementwise/fp8_matrix.hpp"

namespace tern::ops {

/// table (context, E): cosines of the E/2 angles, then their sines.
template <class T>
struct RotaryTable {
  static constexpr Traits traits{.name = "tern::rotary_table"};
  double base;
  Matrix<T> table;

  void check() const;
  double bytes() const { return bytes_of(table); }
  static void portable(const Context&, const RotaryTable&);
};

enum class Direction { forward, backward };  // backward rotates by the opposite angle
/// Positions of the rows of a pass: `first + t` for row t of every sequence, or `rows` (B*T), which
/// must be within the table.
struct Positions {
  int first = 0;
  Vector<const std::int32_t> rows = {};
};
/// In place. x (B, T, heads, E).
template <class T>
struct Rotary {
  static constexpr Traits traits{.name = "tern::rotary", .native = is_half<T>};
  Heads<T> x;
  Matrix<const Accumulate<T>> table;
  Positions positions;
  Direction direction;

  void check() const;
  double bytes() const { return 2 * bytes_of(x); }
  static void portable(const Context&, const Rotary&);
  static bool native(const Context&, const Rotary&);
};

/// rotary backward of the first `heads` heads of size E of dqkv (N, width), rounded to fp8 whole.
/// Rows are those of N / tokens sequences.
template <class T>
struct RotaryBackwardToFp8 {
  static constexpr Traits traits{.name = "tern::rotary_backward_to_fp8",
                                 .native = std::is_same_v<T, bf16>};
  Matrix<T> dqkv;
  std::size_t tokens;
  std::size_t heads;
  Matrix<const Accumulate<T>> table;
  Positions positions;
  Fp8Matrix rounded;

  void check() const;
  double bytes() const { return bytes_of(dqkv) + result_bytes(dqkv, rounded); }
  static void portable(const Context&, const RotaryBackwardToFp8&);
  static bool native(const Context&, const RotaryBackwardToFp8&);
};

}  // namespace tern::ops
