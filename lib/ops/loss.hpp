/// Head and loss, fused in chunks of rows. Conventions: ops.hpp.
#pragma once
#include "ops/native.hpp"

namespace tern::ops {

struct HeadOptions {
  double z_loss = 0;           // weight of logsumexp^2 (PaLM, section 5)
  std::size_t vocabulary = 0;  // columns beyond it (padding) take no part; 0: all
  double cap = 0;  // logits become cap tanh(logit / cap) (Gemma 2, section 2); 0: as they are
};
/// Cross entropy of softmax(x w^T) against targets, without storing all logits: `logits` (C, V)
/// holds one chunk of C rows at a time. x (N, D), w (V, D), targets (N; < 0: ignored), weights (N):
/// d total / d loss_i. losses (N): loss of each row, 0 where ignored. best (N), unless empty: the
/// token of the largest logit, the lowest of equals.
template <class T>
void head_loss_forward(const Context&, const HeadOptions&, Matrix<const T> x, Matrix<const T> w,
                       Vector<const std::int32_t> targets, Matrix<T> logits,
                       Vector<Accumulate<T>> losses, Vector<std::int32_t> best = {});
/// Forward and backward in one pass: dx (N, D) overwritten, dw (V, D) added to. dx may not be x.
template <class T>
void head_loss_backward(const Context&, const HeadOptions&, Matrix<const T> x, Matrix<const T> w,
                        Vector<const std::int32_t> targets, Vector<const Accumulate<T>> weights,
                        Matrix<T> logits, Vector<Accumulate<T>> losses, Matrix<T> dx,
                        Matrix<Accumulate<T>> dw);

/// The M rows of `from` (M, D) into rows `rows` (M, all different) of `to` (N, D); zeros elsewhere.
template <class T>
void scatter_rows(const Context&, Vector<const std::int32_t> rows, Matrix<const T> from,
                  Matrix<T> to);
/// best (N): the column of the largest of each row's first `vocabulary` logits, lowest of equals.
template <class T>
void argmax_rows(const Context&, Matrix<const T> logits, std::size_t vocabulary,
                 Vector<std::int32_t> best);
/// In place: cap tanh(logit / cap); nothing where cap is 0.
template <class T>
void cap_logits(const Context&, double cap, Matrix<T> logits);

/// weights (N) = unit (base + reward / mean of the sequence's losses), for sequences of `tokens`
/// rows. The mean is over rows with a target (N, < 0: none); where it is 0, the weight is unit x
/// base.
template <class A>
void improvement_weights(const Context&, double unit, double base, double reward,
                         Vector<const A> losses, Vector<const std::int32_t> targets,
                         std::size_t tokens, Vector<A> weights);

Twin<&head_loss_forward<bf16>> native_head_loss_forward;
template <>
inline constexpr auto twin<&head_loss_forward<bf16>> = in_cuda("tern::head_loss_forward",
                                                               native_head_loss_forward);
Twin<&head_loss_backward<bf16>> native_head_loss_backward;
template <>
inline constexpr auto twin<&head_loss_backward<bf16>> = in_cuda("tern::head_loss_backward",
                                                                native_head_loss_backward);

}  // namespace tern::ops
