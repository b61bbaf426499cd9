/// Operations of MoE layers (Shazeer et al. 2017; as in Qwen3-MoE): a router chooses k experts per
/// token, and the token's result is the weighted sum of theirs. Conventions: ops.hpp. The number of
/// tokens per expert is known only on the device, so no operation here asks the host.
///
/// Legend: X experts, k per token. A pair is a token and one of its experts: pair n k + j is token
/// n's j-th. R = N k rows, one per pair, sorted by expert, then by pair: expert e has rows
/// [offsets(e), offsets(e + 1)).
#pragma once
#include "ops/core/native.hpp"

namespace tern::ops {

/// Assignment of tokens to experts.
struct Routing {
  Matrix<std::int32_t> experts;  // (N, k) of each token, by decreasing probability
  Vector<std::int32_t> offsets;  // (X + 1)
  Vector<std::int32_t> pairs;    // (R) pair of each row
  Vector<std::int32_t> tokens;   // (R) token of each row
  Matrix<std::int32_t> rows;     // (N, k) row of each pair
};

/// probabilities (N, X) = softmax of the logits (N, X); experts (N, k): the k largest per token;
/// weights (N, k): their probabilities, with `renormalize` divided by their sum. Ties go to the
/// lowest expert; NaN ranks lowest, and results computed from it are NaN.
template <class T>
void route(const Context&, bool renormalize, Matrix<const T> logits,
           Matrix<Accumulate<T>> probabilities, Matrix<Accumulate<T>> weights,
           Matrix<std::int32_t> experts);
template <class T>
struct RouteBackward {
  bool renormalize;
  Matrix<const Accumulate<T>> probabilities;  // (N, X)
  Matrix<const std::int32_t> experts;         // (N, k)
  Matrix<const Accumulate<T>> weights;        // (N, k)
  Matrix<const Accumulate<T>> dweights;       // (N, k)
  Vector<const Accumulate<T>> balance;        // (X), same for every token's probabilities; or empty
  Matrix<T> dlogits;                          // (N, X)
};
/// Gradient of the logits from dweights and from `balance`, the gradient of the probabilities. The
/// choice of experts has no gradient.
template <class T>
void route_backward(const Context&, const RouteBackward<T>&);

/// Fills a routing from its `experts`.
void sort_pairs(const Context&, const Routing&);

// ---- grouped products: each row with its expert's matrix

/// X matrices of (rows, columns), `stride` elements apart.
template <class T>
struct Grouped {
  T* data = nullptr;
  std::size_t count = 0, rows = 0, columns = 0, stride = 0;
};
/// R rows: row r is row rows(r) of the values, or row r if `rows` is empty.
template <class T>
struct Gathered {
  Matrix<const T> values;  // (., width)
  Vector<const std::int32_t> rows = {};
};

/// y (R, O) = x (R, I) w^T, w of (O, I).
template <class T>
void grouped_forward(const Context&, Vector<const std::int32_t> offsets, const Gathered<T>& x,
                     const Grouped<const T>& w, Matrix<T> y);
/// dx (R, I) = dy (R, O) w.
template <class T>
void grouped_backward_input(const Context&, Vector<const std::int32_t> offsets,
                            const Gathered<T>& dy, const Grouped<const T>& w, Matrix<T> dx);
/// dw (O, I) += dy^T x, over the rows of each expert.
template <class T>
void grouped_backward_weight(const Context&, Vector<const std::int32_t> offsets,
                             const Gathered<T>& dy, const Gathered<T>& x,
                             const Grouped<Accumulate<T>>& dw);

// ---- between the products

/// y (R, F) = weight silu(gate) up, x (R, 2F) = [gate | up], weights (N, k) by pair.
template <class T>
void weighted_swiglu(const Context&, Matrix<const T> x, Matrix<const Accumulate<T>> weights,
                     Vector<const std::int32_t> pairs, Matrix<T> y);
/// dx (R, 2F), which may alias x, and dweights (N, k).
template <class T>
void weighted_swiglu_backward(const Context&, Matrix<const T> x,
                              Matrix<const Accumulate<T>> weights, Vector<const std::int32_t> pairs,
                              Matrix<const T> dy, Matrix<T> dx, Matrix<Accumulate<T>> dweights);

/// to (N, D) = added + the sum of each token's k rows of `values` (R, D), in order. added (N, D)
/// may alias `to`, or be empty.
template <class T>
void combine(const Context&, Matrix<const T> values, Matrix<const std::int32_t> rows,
             Matrix<const T> added, Matrix<T> to);

// ---- load balancing (Fedus et al. 2022, "Switch Transformers", equations 4 to 6)

/// A layer's terms of the balance loss: counts (X) of pairs, sums (X) of probabilities (N, X).
template <class A>
void tally_experts(const Context&, Vector<const std::int32_t> offsets,
                   Matrix<const A> probabilities, Vector<A> counts, Vector<A> sums);
template <class A>
struct ExpertBalance {
  double weight;
  std::size_t tokens;            // sum over all L layers
  Matrix<const A> counts, sums;  // (L, X), as tally_experts makes them
  Vector<A> balance;             // (X): gradient of weight * loss with respect to a probability
  Vector<A> shares;              // (X): workspace
  Vector<A> loss;                // (1)
};
/// loss = X times the sum over experts of (pairs / tokens)(mean probability), over all layers
/// together, as in Transformers' load_balancing_loss_func. It is k for uniformly used experts.
template <class A>
void balance_experts(const Context&, const ExpertBalance<A>&);

template <class T>
bool native_route(const Context& context, bool renormalize, Matrix<const T> logits,
                  Matrix<float> probabilities, Matrix<float> weights, Matrix<std::int32_t> experts);
template <>
inline constexpr auto native_kernel<&route<bf16>> = native_entry("tern::route", native_route<bf16>);
template <>
inline constexpr auto native_kernel<&route<fp16>> = native_entry("tern::route", native_route<fp16>);
NativeKernel<&sort_pairs> native_sort_pairs;
template <>
inline constexpr auto native_kernel<&sort_pairs> = native_entry("tern::sort_pairs",
                                                                native_sort_pairs);
template <class T>
bool native_grouped_forward(const Context& context, Vector<const std::int32_t> offsets,
                            const Gathered<T>& x, const Grouped<const T>& w, Matrix<T> y);
template <>
inline constexpr auto native_kernel<&grouped_forward<bf16>> =
    native_entry("tern::grouped_forward", native_grouped_forward<bf16>);
template <>
inline constexpr auto native_kernel<&grouped_forward<fp16>> =
    native_entry("tern::grouped_forward", native_grouped_forward<fp16>);
template <class T>
bool native_grouped_backward_input(const Context& context, Vector<const std::int32_t> offsets,
                                   const Gathered<T>& dy, const Grouped<const T>& w, Matrix<T> dx);
template <>
inline constexpr auto native_kernel<&grouped_backward_input<bf16>> =
    native_entry("tern::grouped_backward_input", native_grouped_backward_input<bf16>);
template <>
inline constexpr auto native_kernel<&grouped_backward_input<fp16>> =
    native_entry("tern::grouped_backward_input", native_grouped_backward_input<fp16>);
template <class T>
bool native_grouped_backward_weight(const Context& context, Vector<const std::int32_t> offsets,
                                    const Gathered<T>& dy, const Gathered<T>& x,
                                    const Grouped<float>& dw);
template <>
inline constexpr auto native_kernel<&grouped_backward_weight<bf16>> =
    native_entry("tern::grouped_backward_weight", native_grouped_backward_weight<bf16>);
template <>
inline constexpr auto native_kernel<&grouped_backward_weight<fp16>> =
    native_entry("tern::grouped_backward_weight", native_grouped_backward_weight<fp16>);
template <class T>
bool native_weighted_swiglu(const Context& context, Matrix<const T> x, Matrix<const float> weights,
                            Vector<const std::int32_t> pairs, Matrix<T> y);
template <>
inline constexpr auto native_kernel<&weighted_swiglu<bf16>> =
    native_entry("tern::weighted_swiglu", native_weighted_swiglu<bf16>);
template <>
inline constexpr auto native_kernel<&weighted_swiglu<fp16>> =
    native_entry("tern::weighted_swiglu", native_weighted_swiglu<fp16>);
template <class T>
bool native_weighted_swiglu_backward(const Context& context, Matrix<const T> x,
                                     Matrix<const float> weights, Vector<const std::int32_t> pairs,
                                     Matrix<const T> dy, Matrix<T> dx, Matrix<float> dweights);
template <>
inline constexpr auto native_kernel<&weighted_swiglu_backward<bf16>> =
    native_entry("tern::weighted_swiglu_backward", native_weighted_swiglu_backward<bf16>);
template <>
inline constexpr auto native_kernel<&weighted_swiglu_backward<fp16>> =
    native_entry("tern::weighted_swiglu_backward", native_weighted_swiglu_backward<fp16>);
template <class T>
bool native_combine(const Context& context, Matrix<const T> values, Matrix<const std::int32_t> rows,
                    Matrix<const T> added, Matrix<T> to);
template <>
inline constexpr auto native_kernel<&combine<bf16>> = native_entry("tern::combine",
                                                                   native_combine<bf16>);
template <>
inline constexpr auto native_kernel<&combine<fp16>> = native_entry("tern::combine",
                                                                   native_combine<fp16>);

}  // namespace tern::ops
