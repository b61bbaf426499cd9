/// Connections with learned scalars: earlier streams into a block's input, embeddings into values.
/// Conventions: ops.hpp.
#pragma once
#include "ops/core/operation.hpp"

namespace tern::ops {

/// y = a x + b input + c skip. Where a is empty, it is 1; where b or c is, its term is missing.
template <class T>
struct ConnectForward {
  static constexpr Traits traits{.name = "tern::connect_forward", .native = is_half<T>};
  Matrix<const T> x, input, skip;  // (N, D)
  Vector<const T> a, b, c;         // (1)
  Matrix<T> y;                     // (N, D), may be x

  void check() const;
  double bytes() const {
    return bytes_of(y) * (2 + (b.extent(0) > 0 ? 1 : 0) + (c.extent(0) > 0 ? 1 : 0));
  }
  static void portable(const Context&, const ConnectForward&);
  static bool native(const Context&, const ConnectForward&);
};

template <class T>
struct ConnectBackward {
  static constexpr Traits traits{.name = "tern::connect_backward", .native = is_half<T>};
  Matrix<const T> x, input, skip;    // (N, D), as in forward
  Vector<const T> a, b, c;           // (1); a and b are given together
  Matrix<T> dy;                      // (N, D): gradient of y, then that of x
  Matrix<T> dinput;                  // (N, D), added to
  Matrix<T> dskip;                   // (N, D), overwritten
  Vector<Accumulate<T>> da, db, dc;  // (1), added to
  Vector<Accumulate<T>> partial;     // workspace, connect_partials() elements

  void check() const;
  double bytes() const {
    return bytes_of(dy) * (1 + (b.extent(0) > 0 ? 5 : 0) + (c.extent(0) > 0 ? 2 : 0));
  }
  static void portable(const Context&, const ConnectBackward&);
  static bool native(const Context&, const ConnectBackward&);
};

/// Workspace elements of the backwards below and above.
std::size_t connect_partials();

/// Columns [first, first + W) of `fused` (N, ·) += scale (1) * table (V, W)[tokens (N)].
template <class T>
struct AddScaledRows {
  static constexpr Traits traits{.name = "tern::add_scaled_rows", .native = is_half<T>};
  Vector<const std::int32_t> tokens;
  Matrix<const T> table;
  Vector<const T> scale;
  Matrix<T> fused;
  std::size_t first;

  void check() const;
  double bytes() const {
    return bytes_of(tokens) +
           3.0 * sizeof(T) * static_cast<double>(fused.extent(0) * table.extent(1));
  }
  static void portable(const Context&, const AddScaledRows&);
  static bool native(const Context&, const AddScaledRows&);
};

/// The table's gradient is embedding_backward of drows.
template <class T>
struct ScaledRowsBackward {
  static constexpr Traits traits{.name = "tern::scaled_rows_backward", .native = is_half<T>};
  Vector<const std::int32_t> tokens;  // (N)
  Matrix<const T> table;              // (V, W)
  Vector<const T> scale;              // (1)
  Matrix<const T> dfused;             // (N, ·), of which columns [first, first + W) count
  std::size_t first;
  Matrix<T> drows;                // (N, W): gradient of the rows of the table
  Vector<Accumulate<T>> dscale;   // (1), added to
  Vector<Accumulate<T>> partial;  // workspace, connect_partials() elements

  void check() const;
  double bytes() const { return bytes_of(tokens) + 3 * bytes_of(drows); }
  static void portable(const Context&, const ScaledRowsBackward&);
  static bool native(const Context&, const ScaledRowsBackward&);
};

}  // namespace tern::ops
