/// Connections with learned scalars: earlier streams into a block's input, embeddings into values.
/// Conventions: ops.hpp.
#pragma once
#include "ops/core/native.hpp"

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

// For profiles. What is added to is read as well; each row of the fused matrix has one of the table.
template <class T>
double bytes_of(const ConnectForward<T>& c) {
  const bool first = c.b.extent(0) > 0, other = c.c.extent(0) > 0;
  return bytes_of(c.y) * (2 + (first ? 1 : 0) + (other ? 1 : 0));
}
template <class T>
double bytes_of(const ConnectBackward<T>& c) {
  const bool first = c.b.extent(0) > 0, other = c.c.extent(0) > 0;
  return bytes_of(c.dy) * (1 + (first ? 5 : 0) + (other ? 2 : 0));
}
template <class T>
double bytes_of(const ScaledRowsBackward<T>& c) {
  return bytes_of(c.tokens) + 3 * bytes_of(c.drows);
}

template <class T>
bool native_connect_forward(const Context& context, const ConnectForward<T>& call);
template <>
inline constexpr auto native_kernel<&connect_forward<bf16>> =
    native_entry("tern::connect_forward", native_connect_forward<bf16>);
template <>
inline constexpr auto native_kernel<&connect_forward<fp16>> =
    native_entry("tern::connect_forward", native_connect_forward<fp16>);
template <class T>
bool native_connect_backward(const Context& context, const ConnectBackward<T>& call);
template <>
inline constexpr auto native_kernel<&connect_backward<bf16>> =
    native_entry("tern::connect_backward", native_connect_backward<bf16>);
template <>
inline constexpr auto native_kernel<&connect_backward<fp16>> =
    native_entry("tern::connect_backward", native_connect_backward<fp16>);
template <class T>
bool native_add_scaled_rows(const Context& context, Vector<const std::int32_t> tokens,
                            Matrix<const T> table, Vector<const T> scale, Matrix<T> fused,
                            std::size_t first);
template <>
inline constexpr auto native_kernel<&add_scaled_rows<bf16>> =
    native_entry("tern::add_scaled_rows", native_add_scaled_rows<bf16>);
template <>
inline constexpr auto native_kernel<&add_scaled_rows<fp16>> =
    native_entry("tern::add_scaled_rows", native_add_scaled_rows<fp16>);
template <>
struct Traffic<&add_scaled_rows<bf16>> {
  double operator()(const auto& tokens, const auto& table, const auto&, const auto& fused,
                    std::size_t) const {
    const auto added = static_cast<double>(fused.extent(0) * table.extent(1));
    return bytes_of(tokens) + 3 * sizeof(bf16) * added;
  }
};
template <>
struct Traffic<&add_scaled_rows<fp16>> : Traffic<&add_scaled_rows<bf16>> {};
template <class T>
bool native_scaled_rows_backward(const Context& context, const ScaledRowsBackward<T>& call);
template <>
inline constexpr auto native_kernel<&scaled_rows_backward<bf16>> =
    native_entry("tern::scaled_rows_backward", native_scaled_rows_backward<bf16>);
template <>
inline constexpr auto native_kernel<&scaled_rows_backward<fp16>> =
    native_entry("tern::scaled_rows_backward", native_scaled_rows_backward<fp16>);

}  // namespace tern::ops
