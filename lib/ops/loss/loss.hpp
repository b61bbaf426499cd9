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

/// Cross entropy of softmax(x w^T) against targets, without storing all logits.
template <class T>
struct HeadLossForward {
  static constexpr Traits traits{.name = "tern::head_loss_forward", .native = is_half<T>};
  HeadOptions options = {};
  Matrix<const T> x;                   // (N, D)
  Matrix<const T> w;                   // (V, D)
  Vector<const std::int32_t> targets;  // (N), < 0: ignored
  Matrix<T> logits;                    // (C, V), workspace of one chunk of C rows
  Vector<Accumulate<T>> losses;        // (N), 0 where ignored
  Vector<std::int32_t> best = {};      // (N) argmax token, lowest on ties; or empty

  void check() const;
  double flops() const { return product_flops(x.size(), w.extent(0)); }
  static void portable(const Context&, const HeadLossForward&);
  static bool native(const Context&, const HeadLossForward&);
};

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

/// Forward and backward in one pass.
template <class T>
struct HeadLossBackward {
  static constexpr Traits traits{.name = "tern::head_loss_backward", .native = is_half<T>};
  HeadOptions options = {};
  Matrix<const T> x, w;
  Vector<const std::int32_t> targets;
  Vector<const Accumulate<T>> weights;  // (N): d total / d loss_i
  Matrix<T> logits;
  Vector<Accumulate<T>> losses;
  Matrix<T> dx;              // (N, D), overwritten; not x
  Matrix<Accumulate<T>> dw;  // (V, D), added to
  HeadFp8<T> fp8 = {};

  void check() const;
  double flops() const { return 3 * product_flops(x.size(), w.extent(0)); }
  static void portable(const Context&, const HeadLossBackward&);
  static bool native(const Context&, const HeadLossBackward&);
};

/// Copies rows `rows` (M) of `from` (N, D) to the first M rows of `to`; zeros in its other rows.
template <class T>
struct GatherRows {
  static constexpr Traits traits{.name = "tern::gather_rows"};
  Vector<const std::int32_t> rows;
  Matrix<const T> from;
  Matrix<T> to;

  void check() const;
  double bytes() const { return bytes_of(rows) + 2 * bytes_of(to); }
  static void portable(const Context&, const GatherRows&);
};

/// Copies the M rows of `from` (M, D) to rows `rows` (M, distinct) of `to` (N, D); zeros elsewhere.
template <class T>
struct ScatterRows {
  static constexpr Traits traits{.name = "tern::scatter_rows"};
  Vector<const std::int32_t> rows;
  Matrix<const T> from;
  Matrix<T> to;

  double bytes() const { return bytes_of(rows, from, to); }
  static void portable(const Context&, const ScatterRows&);
};

/// best (N) = argmax of each row's first `vocabulary` logits (0: all), lowest on ties.
template <class T>
struct ArgmaxRows {
  static constexpr Traits traits{.name = "tern::argmax_rows"};
  Matrix<const T> logits;
  std::size_t vocabulary;
  Vector<std::int32_t> best = {};

  double bytes() const { return bytes_of(logits, best); }
  static void portable(const Context&, const ArgmaxRows&);
};

/// In place: cap tanh(logit / cap); no-op for cap 0.
template <class T>
struct CapLogits {
  static constexpr Traits traits{.name = "tern::cap_logits"};
  double cap;
  Matrix<T> logits;

  double bytes() const { return 2 * bytes_of(logits); }
  static void portable(const Context&, const CapLogits&);
};

/// weights = unit (base + reward / mean of the sequence's losses). The mean is over rows with a
/// target; where it is 0, the weight is unit x base.
template <class A>
struct ImprovementWeights {
  static constexpr Traits traits{.name = "tern::improvement_weights"};
  double unit, base, reward;
  Vector<const A> losses;              // (N)
  Vector<const std::int32_t> targets;  // (N), < 0: none
  std::size_t tokens;                  // rows per sequence
  Vector<A> weights;                   // (N)

  void check() const;
  double bytes() const { return bytes_of(losses, targets, weights); }
  static void portable(const Context&, const ImprovementWeights&);
};

}  // namespace tern::ops
