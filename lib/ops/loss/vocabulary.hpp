/// Embedding, LM head and loss with the vocabulary divided over ranks: each holds W of the V
/// tokens, from `first` on. With exchanges between ranks after these calls they compute
/// embedding_* (embedding.hpp) and head_loss_* (loss.hpp). Conventions: ops.hpp.
#pragma once
#include <algorithm>

#include "ops/loss/loss.hpp"

namespace tern::ops {

/// x = table[tokens - first], zeros for tokens of other ranks, plus positions.
template <class T>
struct EmbeddingPartForward {
  static constexpr Traits traits{.name = "tern::embedding_part_forward"};
  Vector<const std::int32_t> tokens;  // (N)
  std::size_t first;
  Matrix<const T> table;      // (W, D)
  Matrix<const T> positions;  // as in embedding_forward, passed on one rank only; or empty
  std::size_t tokens_per_sequence;
  int first_position;
  Matrix<T> x;  // (N, D)

  double bytes() const { return bytes_of(tokens) + 2 * bytes_of(x); }
  static void portable(const Context&, const EmbeddingPartForward&);
};

/// Adds to dtable (W, D) for this rank's tokens, and to dpositions, as embedding_backward.
template <class T>
struct EmbeddingPartBackward {
  static constexpr Traits traits{.name = "tern::embedding_part_backward"};
  Vector<const std::int32_t> tokens;
  std::size_t first;
  Vector<const std::int32_t> order;
  Matrix<const T> dx;
  std::size_t tokens_per_sequence;
  Matrix<Accumulate<T>> dtable, dpositions;

  static void portable(const Context&, const EmbeddingPartBackward&);
};

/// Of `width` columns of logits from token `first` on, those that are tokens, not padding;
/// `vocabulary` 0: no padding.
constexpr int columns_here(std::size_t width, std::size_t first, std::size_t vocabulary) {
  if (vocabulary == 0) return static_cast<int>(width);
  return static_cast<int>(first >= vocabulary ? 0 : std::min(width, vocabulary - first));
}

/// Figures of a row of a rank's logits: their maximum, the sum of exp(logit - maximum), the
/// target's logit (NaN: on another rank), and the argmax token.
constexpr std::size_t row_figures = 4;
/// figures (C, row_figures) of logits (C, W), already capped; targets (C).
template <class T>
struct RowParts {
  static constexpr Traits traits{.name = "tern::row_parts", .native = is_half<T>};
  Matrix<const T> logits;
  std::size_t first;
  std::size_t vocabulary;
  Vector<const std::int32_t> targets;
  Matrix<Accumulate<T>> figures;

  void check() const;
  double bytes() const { return bytes_of(logits); }
  static void portable(const Context&, const RowParts&);
  static bool native(const Context&, const RowParts&);
};

/// From all ranks' figures (ranks, C, row_figures): losses (C), log-sum-exp lse (C), and best (C)
/// unless empty, as in head_loss_forward.
template <class A>
struct CombineRows {
  static constexpr Traits traits{.name = "tern::combine_rows"};
  Tensor3<const A> figures;
  double z_loss;
  Vector<const std::int32_t> targets;
  Vector<A> losses, lse;
  Vector<std::int32_t> best = {};

  double bytes() const { return bytes_of(figures, targets, losses, lse, best); }
  static void portable(const Context&, const CombineRows&);
};

/// In place: logits (C, W) become gradients of the weighted losses; weights (C).
template <class T>
struct RowGradients {
  static constexpr Traits traits{.name = "tern::row_gradients", .native = is_half<T>};
  HeadOptions options;
  std::size_t first;
  Vector<const std::int32_t> targets;
  Vector<const Accumulate<T>> weights;
  Vector<const Accumulate<T>> lse;
  Matrix<T> logits;

  void check() const;
  double bytes() const { return 2 * bytes_of(logits); }
  static void portable(const Context&, const RowGradients&);
  static bool native(const Context&, const RowGradients&);
};

/// whole (C, ranks x W) from parts (ranks, C, W).
template <class T>
struct JoinColumns {
  static constexpr Traits traits{.name = "tern::join_columns"};
  Tensor3<const T> parts;
  Matrix<T> whole;

  double bytes() const { return bytes_of(parts, whole); }
  static void portable(const Context&, const JoinColumns&);
};

}  // namespace tern::ops
