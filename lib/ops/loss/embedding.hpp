/// Token and position embeddings. Conventions: ops.hpp.
#pragma once
#include "ops/core/native.hpp"

namespace tern::ops {

/// x (N, D) = table (V, D)[tokens (N)] + positions (context, D)[t], positions empty unless learned;
/// row n has position first + n % T.
template <class T>
void embedding_forward(const Context&, Vector<const std::int32_t> tokens, Matrix<const T> table,
                       Matrix<const T> positions, std::size_t tokens_per_sequence, int first,
                       Matrix<T> x);
/// x (N, D) += table (R, D)[rows (N)]. Its backward is embedding_backward without positions.
template <class T>
void embedding_add(const Context&, Vector<const std::int32_t> rows, Matrix<const T> table,
                   Matrix<T> x);
/// Adds to dtable and dpositions (empty unless learned), in an order that depends only on the
/// tokens. `order` (N): row numbers sorted by (token, row), made on the host with the batch.
template <class T>
void embedding_backward(const Context&, Vector<const std::int32_t> tokens,
                        Vector<const std::int32_t> order, Matrix<const T> dx,
                        std::size_t tokens_per_sequence, Matrix<Accumulate<T>> dtable,
                        Matrix<Accumulate<T>> dpositions);

template <class T>
bool native_embedding_forward(const Context& context, Vector<const std::int32_t> tokens,
                              Matrix<const T> table, Matrix<const T> positions,
                              std::size_t tokens_per_sequence, int first, Matrix<T> x);
template <>
inline constexpr auto native_kernel<&embedding_forward<bf16>> =
    native_entry("tern::embedding_forward", native_embedding_forward<bf16>);
template <>
inline constexpr auto native_kernel<&embedding_forward<fp16>> =
    native_entry("tern::embedding_forward", native_embedding_forward<fp16>);
// A row of the table for each row of x.
template <>
struct Traffic<&embedding_forward<bf16>> {
  double operator()(const auto& tokens, const auto&, const auto& positions, std::size_t, int,
                    const auto& x) const {
    return bytes_of(tokens) + (positions.size() > 0 ? 3 : 2) * bytes_of(x);
  }
};
template <>
struct Traffic<&embedding_forward<fp16>> : Traffic<&embedding_forward<bf16>> {};
template <class T>
bool native_embedding_backward(const Context& context, Vector<const std::int32_t> tokens,
                               Vector<const std::int32_t> order, Matrix<const T> dx,
                               std::size_t tokens_per_sequence, Matrix<float> dtable,
                               Matrix<float> dpositions);
template <>
inline constexpr auto native_kernel<&embedding_backward<bf16>> =
    native_entry("tern::embedding_backward", native_embedding_backward<bf16>);
template <>
inline constexpr auto native_kernel<&embedding_backward<fp16>> =
    native_entry("tern::embedding_backward", native_embedding_backward<fp16>);
// Only the tokens tell how many rows of dtable are written.
template <>
struct Traffic<&embedding_backward<bf16>> {
  double operator()(const auto&...) const { return 0; }
};
template <>
struct Traffic<&embedding_backward<fp16>> : Traffic<&embedding_backward<bf16>> {};

}  // namespace tern::ops
