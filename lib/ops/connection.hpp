/// Connections with learned scalars: earlier streams into a block's input, embeddings into values.
/// Conventions: ops.hpp.
#pragma once
#include "ops/native.hpp"

namespace tern::ops {

/// y = a x + b input + c skip. Where a is empty, it is 1; where b or c is, its term is missing.
template <class T>
struct ConnectForward {
  Matrix<const T> x, input, skip;  // (N, D)
  Vector<const T> a, b, c;         // (1)
  Matrix<T> y;                     // (N, D), may be x
};
template <class T>
void connect_forward(const Context&, const ConnectForward<T>&);

template <class T>
struct ConnectBackward {
  Matrix<const T> x, input, skip;    // (N, D), as in forward
  Vector<const T> a, b, c;           // (1); a and b are given together
  Matrix<T> dy;                      // (N, D): gradient of y, then that of x
  Matrix<T> dinput;                  // (N, D), added to
  Matrix<T> dskip;                   // (N, D), overwritten
  Vector<Accumulate<T>> da, db, dc;  // (1), added to
  Vector<Accumulate<T>> partial;     // workspace, connect_partials() elements
};
template <class T>
void connect_backward(const Context&, const ConnectBackward<T>&);
/// Workspace elements of the backwards below and above.
std::size_t connect_partials();

/// Columns [first, first + W) of `fused` (N, ·) += scale (1) * table (V, W)[tokens (N)].
template <class T>
void add_scaled_rows(const Context&, Vector<const std::int32_t> tokens, Matrix<const T> table,
                     Vector<const T> scale, Matrix<T> fused, std::size_t first);

template <class T>
struct ScaledRowsBackward {
  Vector<const std::int32_t> tokens;  // (N)
  Matrix<const T> table;              // (V, W)
  Vector<const T> scale;              // (1)
  Matrix<const T> dfused;             // (N, ·), of which columns [first, first + W) count
  std::size_t first;
  Matrix<T> drows;                // (N, W): gradient of the rows of the table
  Vector<Accumulate<T>> dscale;   // (1), added to
  Vector<Accumulate<T>> partial;  // workspace, connect_partials() elements
};
/// The table's gradient is embedding_backward of drows.
template <class T>
void scaled_rows_backward(const Context&, const ScaledRowsBackward<T>&);

}  // namespace tern::ops
