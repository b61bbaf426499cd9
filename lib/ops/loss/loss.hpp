/// LM head and loss, fused in chunks of rows. Conventions: ops.hpp.
#pragma once
#include "ops/linear/fp8.hpp"

namespace tern::ops {

struct HeadOptions {
  double z_loss = 0;           // weight of log-sum-exp^2 (PaLM, section 5)
  std::size_t vocabulary = 0;  // columns beyond it (padding) are ignored; 0: no padding
  double cap = 0;             // logits become cap tanh(logit / cap) (Gemma 2, section 2); 0: no cap
  double gradient_scale = 1;  // factor of all gradients, not of losses (loss scaling)
};
/// Rows of logits per chunk of the head: at most 256 on the host, for locality. On a GPU whole
/// tiles of its products, at most 4,096 rows and 1 GiB: every chunk reads and writes the weights'
/// gradient (V, D), which takes as long as the products of 700 rows in bf16 and of 1,200 in fp8.
/// Chunks have nearly equal size.
std::size_t head_chunk_rows(std::size_t rows, std::size_t vocabulary, std::size_t element_bytes,
                            bool host);

template <class T>
struct HeadLossForward {
  HeadOptions options = {};
  Matrix<const T> x;                   // (N, D)
  Matrix<const T> w;                   // (V, D)
  Vector<const std::int32_t> targets;  // (N), < 0: ignored
  Matrix<T> logits;                    // (C, V), workspace of one chunk of C rows
  Vector<Accumulate<T>> losses;        // (N), 0 where ignored
  Vector<std::int32_t> best = {};      // (N) argmax token, lowest on ties; or empty
};
/// Cross entropy of softmax(x w^T) against targets, without storing all logits.
template <class T>
void head_loss_forward(const Context&, const HeadLossForward<T>&);

/// For dx and dw by products in fp8, in chunks that fp8_takes(); losses do not depend on it.
template <class T>
struct HeadFp8 {
  const Fp8Workspace<T>* workspace = nullptr;  // for a map of C rows; null: products in T
  Fp8Scale input, gradient;                    // of a chunk of x and of its logits' gradient
  Vector<Accumulate<T>> lse;                   // (C), workspace

  HeadFp8() = default;
  HeadFp8(Arena& arena, const Fp8Workspace<T>& of, std::size_t C);
  bool takes(std::size_t rows, const Matrix<const T>& w) const {
    return workspace && fp8_takes(rows, w.extent(1), w.extent(0));
  }
};

template <class T>
struct HeadLossBackward {
  HeadOptions options = {};
  Matrix<const T> x, w;
  Vector<const std::int32_t> targets;
  Vector<const Accumulate<T>> weights;  // (N): d total / d loss_i
  Matrix<T> logits;
  Vector<Accumulate<T>> losses;
  Matrix<T> dx;              // (N, D), overwritten; not x
  Matrix<Accumulate<T>> dw;  // (V, D), added to
  HeadFp8<T> fp8 = {};
};
/// Forward and backward in one pass.
template <class T>
void head_loss_backward(const Context&, const HeadLossBackward<T>&);

/// Copies rows `rows` (M) of `from` (N, D) to the first M rows of `to`; zeros in its other rows.
template <class T>
void gather_rows(const Context&, Vector<const std::int32_t> rows, Matrix<const T> from,
                 Matrix<T> to);
/// Copies the M rows of `from` (M, D) to rows `rows` (M, distinct) of `to` (N, D); zeros elsewhere.
template <class T>
void scatter_rows(const Context&, Vector<const std::int32_t> rows, Matrix<const T> from,
                  Matrix<T> to);
/// best (N) = argmax of each row's first `vocabulary` logits (0: all), lowest on ties.
template <class T>
void argmax_rows(const Context&, Matrix<const T> logits, std::size_t vocabulary,
                 Vector<std::int32_t> best);
/// In place: cap tanh(logit / cap); no-op for cap 0.
template <class T>
void cap_logits(const Context&, double cap, Matrix<T> logits);

template <class A>
struct ImprovementWeights {
  double unit, base, reward;
  Vector<const A> losses;              // (N)
  Vector<const std::int32_t> targets;  // (N), < 0: none
  std::size_t tokens;                  // rows per sequence
  Vector<A> weights;                   // (N)
};
/// weights = unit (base + reward / mean of the sequence's losses). The mean is over rows with a
/// target; where it is 0, the weight is unit x base.
template <class A>
void improvement_weights(const Context&, const ImprovementWeights<A>&);

template <class T>
bool native_head_loss_forward(const Context& context, const HeadLossForward<T>& call);
template <>
inline constexpr auto native_kernel<&head_loss_forward<bf16>> =
    native_entry("tern::head_loss_forward", native_head_loss_forward<bf16>);
template <>
inline constexpr auto native_kernel<&head_loss_forward<fp16>> =
    native_entry("tern::head_loss_forward", native_head_loss_forward<fp16>);
template <>
struct Flops<&head_loss_forward<bf16>> {
  double operator()(const auto& c) const { return product_flops(c.x.size(), c.w.extent(0)); }
};
template <>
struct Flops<&head_loss_forward<fp16>> : Flops<&head_loss_forward<bf16>> {};
template <class T>
bool native_head_loss_backward(const Context& context, const HeadLossBackward<T>& call);
template <>
inline constexpr auto native_kernel<&head_loss_backward<bf16>> =
    native_entry("tern::head_loss_backward", native_head_loss_backward<bf16>);
template <>
inline constexpr auto native_kernel<&head_loss_backward<fp16>> =
    native_entry("tern::head_loss_backward", native_head_loss_backward<fp16>);
template <>
struct Flops<&head_loss_backward<bf16>> {
  double operator()(const auto& c) const { return 3 * product_flops(c.x.size(), c.w.extent(0)); }
};
template <>
struct Flops<&head_loss_backward<fp16>> : Flops<&head_loss_backward<bf16>> {};

}  // namespace tern::ops
