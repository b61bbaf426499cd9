/// Operations of MoE layers (Shazeer et al. 2017; as in Qwen3-MoE): a router chooses k experts per
/// token, and the token's result is the weighted sum of theirs. Conventions: ops.hpp. The number of
/// tokens per expert is known only on the device, so no operation here asks the host.
///
/// Legend: X experts, k per token. A pair is a token and one of its experts: pair n k + j is token
/// n's j-th. R = N k rows, one per pair, sorted by expert, then by pair: expert e has rows
/// [offsets(e), offsets(e + 1)).
#pragma once
#include "ops/core/operation.hpp"

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
struct Route {
  static constexpr Traits traits{.name = "tern::route", .native = is_half<T>};
  bool renormalize;
  Matrix<const T> logits;
  Matrix<Accumulate<T>> probabilities;
  Matrix<Accumulate<T>> weights;
  Matrix<std::int32_t> experts;

  void check() const;
  double bytes() const { return bytes_of(logits, probabilities, weights, experts); }
  static void portable(const Context&, const Route&);
  static bool native(const Context&, const Route&);
};

/// Gradient of the logits from dweights and from `balance`, the gradient of the probabilities. The
/// choice of experts has no gradient.
template <class T>
struct RouteBackward {
  static constexpr Traits traits{.name = "tern::route_backward"};
  bool renormalize;
  Matrix<const Accumulate<T>> probabilities;  // (N, X)
  Matrix<const std::int32_t> experts;         // (N, k)
  Matrix<const Accumulate<T>> weights;        // (N, k)
  Matrix<const Accumulate<T>> dweights;       // (N, k)
  Vector<const Accumulate<T>> balance;        // (X), same for every token's probabilities; or empty
  Matrix<T> dlogits;                          // (N, X)

  void check() const;
  double bytes() const {
    return bytes_of(probabilities, experts, weights, dweights, balance, dlogits);
  }
  static void portable(const Context&, const RouteBackward&);
};

/// Fills a routing from its `experts`.
struct SortPairs {
  static constexpr Traits traits{.name = "tern::sort_pairs", .native = true};
  Routing routing;

  void check() const;
  double bytes() const {
    return bytes_of(routing.experts, routing.offsets, routing.pairs, routing.tokens, routing.rows);
  }
  static void portable(const Context&, const SortPairs&);
  static bool native(const Context&, const SortPairs&);
};

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

  std::size_t count() const { return rows.extent(0) > 0 ? rows.extent(0) : values.extent(0); }
};

/// y (R, O) = x (R, I) w^T, w of (O, I).
template <class T>
struct GroupedForward {
  static constexpr Traits traits{.name = "tern::grouped_forward", .native = is_half<T>};
  Vector<const std::int32_t> offsets;
  Gathered<T> x;
  Grouped<const T> w;
  Matrix<T> y;

  void check() const;
  double flops() const { return product_flops(y.size(), w.columns); }
  static void portable(const Context&, const GroupedForward&);
  static bool native(const Context&, const GroupedForward&);
};

/// dx (R, I) = dy (R, O) w.
template <class T>
struct GroupedBackwardInput {
  static constexpr Traits traits{.name = "tern::grouped_backward_input", .native = is_half<T>};
  Vector<const std::int32_t> offsets;
  Gathered<T> dy;
  Grouped<const T> w;
  Matrix<T> dx;

  void check() const;
  double flops() const { return product_flops(dx.size(), w.rows); }
  static void portable(const Context&, const GroupedBackwardInput&);
  static bool native(const Context&, const GroupedBackwardInput&);
};

/// dw (O, I) += dy^T x, over the rows of each expert.
template <class T>
struct GroupedBackwardWeight {
  static constexpr Traits traits{.name = "tern::grouped_backward_weight", .native = is_half<T>};
  Vector<const std::int32_t> offsets;
  Gathered<T> dy;
  Gathered<T> x;
  Grouped<Accumulate<T>> dw;

  void check() const;
  double flops() const { return product_flops(dy.count() * dw.rows, dw.columns); }
  static void portable(const Context&, const GroupedBackwardWeight&);
  static bool native(const Context&, const GroupedBackwardWeight&);
};

// ---- between the products

/// y (R, F) = weight silu(gate) up, x (R, 2F) = [gate | up], weights (N, k) by pair.
template <class T>
struct WeightedSwiglu {
  static constexpr Traits traits{.name = "tern::weighted_swiglu", .native = is_half<T>};
  Matrix<const T> x;
  Matrix<const Accumulate<T>> weights;
  Vector<const std::int32_t> pairs;
  Matrix<T> y;

  void check() const;
  double bytes() const { return bytes_of(x, weights, pairs, y); }
  static void portable(const Context&, const WeightedSwiglu&);
  static bool native(const Context&, const WeightedSwiglu&);
};

/// dx (R, 2F), which may alias x, and dweights (N, k).
template <class T>
struct WeightedSwigluBackward {
  static constexpr Traits traits{.name = "tern::weighted_swiglu_backward", .native = is_half<T>};
  Matrix<const T> x;
  Matrix<const Accumulate<T>> weights;
  Vector<const std::int32_t> pairs;
  Matrix<const T> dy;
  Matrix<T> dx;
  Matrix<Accumulate<T>> dweights;

  void check() const;
  double bytes() const { return bytes_of(x, weights, pairs, dy, dx, dweights); }
  static void portable(const Context&, const WeightedSwigluBackward&);
  static bool native(const Context&, const WeightedSwigluBackward&);
};

/// to (N, D) = added + the sum of each token's k rows of `values` (R, D), in order. added (N, D)
/// may alias `to`, or be empty.
template <class T>
struct Combine {
  static constexpr Traits traits{.name = "tern::combine", .native = is_half<T>};
  Matrix<const T> values;
  Matrix<const std::int32_t> rows;
  Matrix<const T> added = {};
  Matrix<T> to;

  void check() const;
  double bytes() const { return bytes_of(values, rows, added, to); }
  static void portable(const Context&, const Combine&);
  static bool native(const Context&, const Combine&);
};

// ---- load balancing (Fedus et al. 2022, "Switch Transformers", equations 4 to 6)

/// A layer's terms of the balance loss: counts (X) of pairs, sums (X) of probabilities (N, X).
template <class A>
struct TallyExperts {
  static constexpr Traits traits{.name = "tern::tally_experts"};
  Vector<const std::int32_t> offsets;
  Matrix<const A> probabilities;
  Vector<A> counts;
  Vector<A> sums;

  void check() const;
  double bytes() const { return bytes_of(offsets, probabilities, counts, sums); }
  static void portable(const Context&, const TallyExperts&);
};

/// loss = X times the sum over experts of (pairs / tokens)(mean probability), over all layers
/// together, as in Transformers' load_balancing_loss_func. It is k for uniformly used experts.
template <class A>
struct ExpertBalance {
  static constexpr Traits traits{.name = "tern::balance_experts"};
  double weight;
  std::size_t tokens;            // sum over all L layers
  Matrix<const A> counts, sums;  // (L, X), as tally_experts makes them
  Vector<A> balance;             // (X): gradient of weight * loss with respect to a probability
  Vector<A> shares;              // (X): workspace
  Vector<A> loss;                // (1)

  void check() const;
  double bytes() const { return bytes_of(counts, sums, balance); }
  static void portable(const Context&, const ExpertBalance&);
};

}  // namespace tern::ops
