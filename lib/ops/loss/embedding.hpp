/// Token and position embeddings. Conventions: ops.hpp.
#pragma once
#include "ops/core/operation.hpp"

namespace tern::ops {

/// x (N, D) = table (V, D)[tokens (N)] + positions (context, D)[t], positions empty unless learned;
/// row n has position first + n % T.
template <class T>
struct EmbeddingForward {
  static constexpr Traits traits{.name = "tern::embedding_forward", .native = is_half<T>};
  Vector<const std::int32_t> tokens;
  Matrix<const T> table;
  Matrix<const T> positions;
  std::size_t tokens_per_sequence;
  int first;
  Matrix<T> x;

  void check() const;
  double bytes() const { return bytes_of(tokens) + (positions.size() > 0 ? 3 : 2) * bytes_of(x); }
  static void portable(const Context&, const EmbeddingForward&);
  static bool native(const Context&, const EmbeddingForward&);
};

/// x (N, D) += table (R, D)[rows (N)]. Its backward is embedding_backward without positions.
template <class T>
struct EmbeddingAdd {
  static constexpr Traits traits{.name = "tern::embedding_add"};
  Vector<const std::int32_t> rows;
  Matrix<const T> table;
  Matrix<T> x;

  void check() const;
  double bytes() const { return bytes_of(rows) + 3 * bytes_of(x); }
  static void portable(const Context&, const EmbeddingAdd&);
};

/// Adds to dtable and dpositions (empty unless learned), in an order that depends only on the
/// tokens. `order` (N): row numbers sorted by (token, row), made on the host with the batch.
template <class T>
struct EmbeddingBackward {
  static constexpr Traits traits{.name = "tern::embedding_backward", .native = is_half<T>};
  Vector<const std::int32_t> tokens, order;
  Matrix<const T> dx;
  std::size_t tokens_per_sequence;
  Matrix<Accumulate<T>> dtable;
  Matrix<Accumulate<T>> dpositions = {};

  void check() const;
  static void portable(const Context&, const EmbeddingBackward&);
  static bool native(const Context&, const EmbeddingBackward&);
};

}  // namespace tern::ops
