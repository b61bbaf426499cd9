/// Operations of expert layers (Shazeer et al. 2017; as Qwen3-MoE has them): a router chooses for
/// each token some of the layer's feed-forward networks, and the token's result is the weighted sum
/// of theirs. Conventions are those of ops.hpp: row-major views, sums in Accumulate<T>, results
/// that repeat bit for bit. How many tokens an expert has is known on the device alone, so no
/// operation here asks the host.
///
/// Legend: X experts, k of them a token. A pair is a token and one of its experts: pair n k + j is
/// the j-th of token n. R = N k rows, one a pair, sorted by expert and by pair within: the rows of
/// expert e are [offsets(e), offsets(e + 1)).
#pragma once
#include "ops/native.hpp"

namespace tern::ops {

/// Which token goes where.
struct Routing {
  Matrix<std::int32_t> experts;  // (N, k) of each token, by falling probability
  Vector<std::int32_t> offsets;  // (X + 1)
  Vector<std::int32_t> pairs;    // (R) the pair of each row
  Vector<std::int32_t> tokens;   // (R) its token
  Matrix<std::int32_t> rows;     // (N, k) the row of each pair
};

/// probabilities (N, X) = softmax of the logits (N, X), and the k largest of each token: experts
/// (N, k), and weights (N, k), their probabilities, with `renormalise` over their sum. Of equal
/// logits the lowest expert comes first; NaN counts as the least, and what it touches is NaN.
template <class T>
void route(const Context&, bool renormalise, Matrix<const T> logits,
           Matrix<Accumulate<T>> probabilities, Matrix<Accumulate<T>> weights,
           Matrix<std::int32_t> experts);
template <class T>
struct RouteBackward {
  bool renormalise;
  Matrix<const Accumulate<T>> probabilities;  // (N, X)
  Matrix<const std::int32_t> experts;         // (N, k)
  Matrix<const Accumulate<T>> weights;        // (N, k)
  Matrix<const Accumulate<T>> dweights;       // (N, k)
  Vector<const Accumulate<T>> balance;        // (X), of each token's probabilities; or empty
  Matrix<T> dlogits;                          // (N, X)
};
/// The gradient of the logits from that of the weights and of the probabilities. Which experts are
/// chosen has no gradient.
template <class T>
void route_backward(const Context&, const RouteBackward<T>&);

/// Fills all of a routing but `experts`, which it reads.
void sort_pairs(const Context&, const Routing&);

// ---- grouped products: each row by the matrix of its expert
// ----------------------------------------------------------

/// X matrices of (rows, columns), `stride` elements from one to the next.
template <class T>
struct Grouped {
  T* data = nullptr;
  std::size_t count = 0, rows = 0, columns = 0, stride = 0;
};
/// R rows: row r is row rows(r) of the values, or r where `rows` is empty.
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
// --------------------------------------------------------------------------------------------

/// y (R, F) = weight silu(gate) up, x (R, 2F) = [gate | up], weights (N, k) by pair.
template <class T>
void weighted_swiglu(const Context&, Matrix<const T> x, Matrix<const Accumulate<T>> weights,
                     Vector<const std::int32_t> pairs, Matrix<T> y);
/// dx (R, 2F), which may be x, and dweights (N, k).
template <class T>
void weighted_swiglu_backward(const Context&, Matrix<const T> x,
                              Matrix<const Accumulate<T>> weights, Vector<const std::int32_t> pairs,
                              Matrix<const T> dy, Matrix<T> dx, Matrix<Accumulate<T>> dweights);

/// to (N, D) = added + the sum of each token's k rows of `values` (R, D), in their order. added
/// (N, D) may be `to`, or empty.
template <class T>
void combine(const Context&, Matrix<const T> values, Matrix<const std::int32_t> rows,
             Matrix<const T> added, Matrix<T> to);

// ---- load balancing (Fedus et al. 2022, "Switch Transformers", equations 4 to 6)
// ------------------------------------

/// What a layer adds to the loss: counts (X) of pairs, and sums (X) of probabilities (N, X).
template <class A>
void tally_experts(const Context&, Vector<const std::int32_t> offsets,
                   Matrix<const A> probabilities, Vector<A> counts, Vector<A> sums);
template <class A>
struct ExpertBalance {
  double weight;
  std::size_t tokens;            // of all L layers
  Matrix<const A> counts, sums;  // (L, X), as tally_experts makes them
  Vector<A> balance;             // (X): the gradient of `weight` times the loss, by a probability
  Vector<A> shares;              // (X): workspace
  Vector<A> loss;                // (1)
};
/// loss = X times the sum over experts of (pairs / tokens)(mean probability), added up over layers,
/// as Transformers' load_balancing_loss_func does. It is k where all experts are used alike.
template <class A>
void balance_experts(const Context&, const ExpertBalance<A>&);

Twin<&route<bf16>> native_route;
template <>
inline constexpr auto twin<&route<bf16>> = in_cuda("tern::route", native_route);
Twin<&sort_pairs> native_sort_pairs;
template <>
inline constexpr auto twin<&sort_pairs> = in_cuda("tern::sort_pairs", native_sort_pairs);
Twin<&grouped_forward<bf16>> native_grouped_forward;
template <>
inline constexpr auto twin<&grouped_forward<bf16>> = in_cuda("tern::grouped_forward",
                                                             native_grouped_forward);
Twin<&grouped_backward_input<bf16>> native_grouped_backward_input;
template <>
inline constexpr auto twin<&grouped_backward_input<bf16>> = in_cuda("tern::grouped_backward_input",
                                                                    native_grouped_backward_input);
Twin<&grouped_backward_weight<bf16>> native_grouped_backward_weight;
template <>
inline constexpr auto twin<&grouped_backward_weight<bf16>> =
    in_cuda("tern::grouped_backward_weight", native_grouped_backward_weight);
Twin<&weighted_swiglu<bf16>> native_weighted_swiglu;
template <>
inline constexpr auto twin<&weighted_swiglu<bf16>> = in_cuda("tern::weighted_swiglu",
                                                             native_weighted_swiglu);
Twin<&weighted_swiglu_backward<bf16>> native_weighted_swiglu_backward;
template <>
inline constexpr auto twin<&weighted_swiglu_backward<bf16>> =
    in_cuda("tern::weighted_swiglu_backward", native_weighted_swiglu_backward);
Twin<&combine<bf16>> native_combine;
template <>
inline constexpr auto twin<&combine<bf16>> = in_cuda("tern::combine", native_combine);

}  // namespace tern::ops
