/// Embedding, LM head and loss with the vocabulary divided over ranks: each holds W of the V
/// tokens, from `first` on. With exchanges between ranks after these calls they compute
/// embedding_* (embedding.hpp) and head_loss_* (loss.hpp). Conventions: ops.hpp.
#pragma once
#include <algorithm>

#include "ops/loss/loss.hpp"

namespace tern::ops {

template <class T>
struct EmbeddingPartForward {
  Vector<const std::int32_t> tokens;  // (N)
  std::size_t first;
  Matrix<const T> table;      // (W, D)
  Matrix<const T> positions;  // as in embedding_forward, passed on one rank only; or empty
  std::size_t tokens_per_sequence;
  int first_position;
  Matrix<T> x;  // (N, D)
};
/// x = table[tokens - first], zeros for tokens of other ranks, plus positions.
template <class T>
void embedding_part_forward(const Context&, const EmbeddingPartForward<T>&);

template <class T>
struct EmbeddingPartBackward {
  Vector<const std::int32_t> tokens;
  std::size_t first;
  Vector<const std::int32_t> order;
  Matrix<const T> dx;
  std::size_t tokens_per_sequence;
  Matrix<Accumulate<T>> dtable, dpositions;
};
/// Adds to dtable (W, D) for this rank's tokens, and to dpositions, as embedding_backward.
template <class T>
void embedding_part_backward(const Context&, const EmbeddingPartBackward<T>&);

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
void row_parts(const Context&, Matrix<const T> logits, std::size_t first, std::size_t vocabulary,
               Vector<const std::int32_t> targets, Matrix<Accumulate<T>> figures);
/// From all ranks' figures (ranks, C, row_figures): losses (C), log-sum-exp lse (C), and best (C)
/// unless empty, as in head_loss_forward.
template <class A>
void combine_rows(const Context&, Tensor3<const A> figures, double z_loss,
                  Vector<const std::int32_t> targets, Vector<A> losses, Vector<A> lse,
                  Vector<std::int32_t> best);
/// In place: logits (C, W) become gradients of the weighted losses; weights (C).
template <class T>
void row_gradients(const Context&, const HeadOptions&, std::size_t first,
                   Vector<const std::int32_t> targets, Vector<const Accumulate<T>> weights,
                   Vector<const Accumulate<T>> lse, Matrix<T> logits);

/// whole (C, ranks x W) from parts (ranks, C, W).
template <class T>
void join_columns(const Context&, Tensor3<const T> parts, Matrix<T> whole);

template <class T>
bool native_row_parts(const Context& context, Matrix<const T> logits, std::size_t first,
                      std::size_t vocabulary, Vector<const std::int32_t> targets,
                      Matrix<float> figures);
template <>
inline constexpr auto native_kernel<&row_parts<bf16>> = native_entry("tern::row_parts",
                                                                     native_row_parts<bf16>);
template <>
inline constexpr auto native_kernel<&row_parts<fp16>> = native_entry("tern::row_parts",
                                                                     native_row_parts<fp16>);
template <>
struct Traffic<&row_parts<bf16>> {
  double operator()(const auto& logits, std::size_t, std::size_t, const auto&, const auto&) const {
    return bytes_of(logits);
  }
};
template <>
struct Traffic<&row_parts<fp16>> : Traffic<&row_parts<bf16>> {};
template <class T>
bool native_row_gradients(const Context& context, const HeadOptions& options, std::size_t first,
                          Vector<const std::int32_t> targets, Vector<const float> weights,
                          Vector<const float> lse, Matrix<T> logits);
template <>
inline constexpr auto native_kernel<&row_gradients<bf16>> =
    native_entry("tern::row_gradients", native_row_gradients<bf16>);
template <>
inline constexpr auto native_kernel<&row_gradients<fp16>> =
    native_entry("tern::row_gradients", native_row_gradients<fp16>);
template <>
struct Traffic<&row_gradients<bf16>> {
  double operator()(const HeadOptions&, std::size_t, const auto&, const auto&, const auto&,
                    const auto& logits) const {
    return 2 * bytes_of(logits);
  }
};
template <>
struct Traffic<&row_gradients<fp16>> : Traffic<&row_gradients<bf16>> {};

}  // namespace tern::ops
