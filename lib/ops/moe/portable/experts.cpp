#include "ops/moe/experts.hpp"

#include "base/error.hpp"
#include "ops/core/portable/column_sums.hpp"
#include "ops/core/portable/math.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/moe/portable/detail/grouped_gemm.hpp"

namespace tern::ops {

namespace portable {
/// Gate, up and pair's weight of one row.
template <class T>
struct SwigluRow {
  using A = Accumulate<T>;
  const T *gate, *up;
  A weight;
  KOKKOS_FUNCTION SwigluRow(const Matrix<const T>& x, const Matrix<const A>& weights,
                            const Vector<const std::int32_t>& pairs, int row)
      : gate(&x(row, 0)), up(gate + x.extent(1) / 2), weight(weights.data()[pairs(row)]) {}
};

}  // namespace portable

using namespace portable;
namespace {

using detail::Team;

template <class T>
struct Route {
  using A = Accumulate<T>;
  bool renormalize;
  Matrix<const T> logits;
  Matrix<A> probabilities, weights;
  Matrix<std::int32_t> experts;

  /// NaN and -infinity rank above next()'s `none`, so they can be chosen if nothing else is left.
  KOKKOS_FUNCTION static A rank(const T logit) {
    const A value = A(logit), least = -Kokkos::Experimental::finite_max_v<A>;
    return value > least ? value : least;
  }

  /// Column that follows (last, index `at`) in the order of decreasing logits, ties by index.
  KOKKOS_FUNCTION int next(const Team& team, const T* row, int n, A last, int at) const {
    const A none = -Kokkos::Experimental::infinity_v<A>;
    const auto follows = [=](A value, int i) { return value < last || (value == last && i > at); };
    const A best = detail::row_max<A>(team, n, [=](const int i) {
      const A value = rank(row[i]);
      return follows(value, i) ? value : none;
    });
    const A behind = detail::row_max<A>(team, n, [=](const int i) {
      const A value = rank(row[i]);
      return follows(value, i) && value == best ? A(n - i) : A(0);
    });
    return n - static_cast<int>(behind);
  }

  KOKKOS_FUNCTION void operator()(const Team& team, const int row) const {
    const int n = static_cast<int>(logits.extent(1)), k = static_cast<int>(experts.extent(1));
    const T* in = &logits(row, 0);
    A* out = &probabilities(row, 0);
    const A top = detail::row_max<A>(team, n, [=](const int i) { return A(in[i]); });
    const A total =
        detail::row_sum<A>(team, n, [=](const int i) { return exponential(A(in[i]) - top); });
    detail::columns(team, n, [=](const int i) { out[i] = exponential(A(in[i]) - top) / total; });
    A sum = 0, last = Kokkos::Experimental::infinity_v<A>;
    for (int j = 0, at = -1; j < k; ++j) {
      at = next(team, in, n, last, at);
      last = rank(in[at]);
      const A chosen = exponential(A(in[at]) - top) / total;
      sum += chosen;
      Kokkos::single(Kokkos::PerThread(team), [&] {
        experts(row, j) = at;
        weights(row, j) = chosen;
      });
    }
    if (!renormalize) return;
    Kokkos::single(Kokkos::PerThread(team), [&] {
      for (int j = 0; j < k; ++j) weights(row, j) /= sum;
    });
  }
};

template <class T>
struct RouteBackwardRows {
  using A = Accumulate<T>;
  bool renormalize;
  Matrix<const A> probabilities;
  Matrix<const std::int32_t> experts;
  Matrix<const A> weights, dweights;
  Vector<const A> balance;  // or empty
  Matrix<T> dlogits;

  KOKKOS_FUNCTION void operator()(const Team& team, const int row) const {
    const int n = static_cast<int>(dlogits.extent(1)), k = static_cast<int>(experts.extent(1));
    const A *p = &probabilities(row, 0), *w = &weights(row, 0), *dw = &dweights(row, 0);
    const std::int32_t* chosen = &experts(row, 0);
    const A* even = balance.extent(0) > 0 ? balance.data() : nullptr;
    // Gradient of a chosen probability: (dw - shift) / sum.
    A sum = 1, shift = 0;
    if (renormalize) {
      sum = 0;
      for (int j = 0; j < k; ++j) sum += p[chosen[j]], shift += w[j] * dw[j];
    }
    const auto slope = [=](const int i) {
      A result = even ? even[i] : A(0);
      for (int j = 0; j < k; ++j)
        if (chosen[j] == i) result += (dw[j] - shift) / sum;
      return result;
    };
    const A center = detail::row_sum<A>(team, n, [=](const int i) { return p[i] * slope(i); });
    T* out = &dlogits(row, 0);
    detail::columns(team, n, [=](const int i) { out[i] = T(p[i] * (slope(i) - center)); });
  }
};

/// One team per expert: its rows begin at the number of pairs with lower experts; its pairs follow
/// in order.
struct SortPairs {
  Routing routing;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int expert = team.league_rank(), all = static_cast<int>(routing.pairs.extent(0));
    const int k = static_cast<int>(routing.experts.extent(1));
    const Routing to = routing;
    const std::int32_t* of = to.experts.data();
    std::int32_t first = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, all),
        [=](const int pair, std::int32_t& sum) { sum += of[pair] < expert; }, first);
    Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, all),
                          [=](const int pair, std::int32_t& before, const bool final) {
                            if (of[pair] != expert) return;
                            if (final) {
                              const std::int32_t row = first + before;
                              to.pairs(row) = pair;
                              to.tokens(row) = pair / k;
                              to.rows.data()[pair] = row;
                            }
                            ++before;
                          });
    Kokkos::single(Kokkos::PerTeam(team), [=] {
      to.offsets(expert) = first;
      if (expert + 2 == static_cast<int>(to.offsets.extent(0))) to.offsets(expert + 1) = all;
    });
  }
};

template <class T>
std::size_t rows_of(const Gathered<T>& g) {
  return g.rows.extent(0) > 0 ? g.rows.extent(0) : g.values.extent(0);
}

/// Checks the shapes of a product of R rows of `in` with X matrices into rows of `out`.
template <class T, class W>
void check_grouped(const Vector<const std::int32_t>& offsets, const Gathered<T>& in,
                   std::size_t width, const W& w, std::size_t rows, std::size_t out,
                   std::size_t to) {
  TERN_REQUIRE(offsets.extent(0) == w.count + 1 && w.count > 0, "{} offsets for {} matrices",
               offsets.extent(0), w.count);
  TERN_REQUIRE(in.values.extent(1) == width && out == to && rows_of(in) == rows &&
                   w.stride >= w.rows * w.columns,
               "{} rows of {} by ({}, {}), {} apart, to {} rows of {}", rows_of(in),
               in.values.extent(1), w.rows, w.columns, w.stride, rows, out);
}

template <class M, class K>
void check_pairs(const M& experts, const K& others, const char* what) {
  TERN_REQUIRE(experts.extent(0) == others.extent(0) && experts.extent(1) == others.extent(1),
               "({}, {}) experts, ({}, {}) {}", experts.extent(0), experts.extent(1),
               others.extent(0), others.extent(1), what);
}

int size(std::size_t extent) { return static_cast<int>(extent); }

}  // namespace

template <class T>
void route(const Context& context, bool renormalize, Matrix<const T> logits,
           Matrix<Accumulate<T>> probabilities, Matrix<Accumulate<T>> weights,
           Matrix<std::int32_t> experts) {
  check_pairs(experts, weights, "weights");
  TERN_REQUIRE(experts.extent(0) == logits.extent(0) && experts.extent(1) > 0 &&
                   experts.extent(1) <= logits.extent(1) && probabilities.size() == logits.size(),
               "({}, {}) logits, {} probabilities, ({}, {}) experts", logits.extent(0),
               logits.extent(1), probabilities.size(), experts.extent(0), experts.extent(1));
  if (native<&route<T>>(context, renormalize, logits, probabilities, weights, experts)) return;
  detail::for_each_row(context, "tern::route", logits.extent(0),
                       Route<T>{renormalize, logits, probabilities, weights, experts});
}

template <class T>
void route_backward(const Context& context, const RouteBackward<T>& call) {
  check_pairs(call.experts, call.weights, "weights");
  check_pairs(call.experts, call.dweights, "gradients of weights");
  TERN_REQUIRE(
      call.probabilities.size() == call.dlogits.size() &&
          call.probabilities.extent(0) == call.experts.extent(0) &&
          (call.balance.extent(0) == 0 || call.balance.extent(0) == call.dlogits.extent(1)),
      "{} probabilities, ({}, {}) gradients of logits, {} of balance", call.probabilities.size(),
      call.dlogits.extent(0), call.dlogits.extent(1), call.balance.extent(0));
  detail::for_each_row(
      context, "tern::route_backward", call.dlogits.extent(0),
      RouteBackwardRows<T>{call.renormalize, call.probabilities, call.experts, call.weights,
                           call.dweights, call.balance, call.dlogits});
}

void sort_pairs(const Context& context, const Routing& routing) {
  const std::size_t pairs = routing.experts.size();
  TERN_REQUIRE(routing.pairs.extent(0) == pairs && routing.tokens.extent(0) == pairs &&
                   routing.rows.size() == pairs && routing.offsets.extent(0) > 1,
               "{} experts, {} pairs, {} tokens, {} rows, {} offsets", pairs,
               routing.pairs.extent(0), routing.tokens.extent(0), routing.rows.size(),
               routing.offsets.extent(0));
  if (native<&sort_pairs>(context, routing)) return;
  const int groups = size(routing.offsets.extent(0)) - 1;
  Kokkos::TeamPolicy<Device> policy(context.space, groups, detail::on_host ? 1 : 256);
  Kokkos::parallel_for("tern::sort_pairs", policy, SortPairs{routing});
}

template <class T>
void grouped_forward(const Context& context, Vector<const std::int32_t> offsets,
                     const Gathered<T>& x, const Grouped<const T>& w, Matrix<T> y) {
  check_grouped(offsets, x, w.columns, w, y.extent(0), y.extent(1), w.rows);
  if (native<&grouped_forward<T>>(context, offsets, x, w, y)) return;
  detail::grouped_gemm(
      context,
      detail::GroupedGemm<T, T>{detail::GroupedKind::forward, offsets.data(), size(w.count),
                                detail::StoredRows<T>(x),
                                detail::StoredRows<T>({as_matrix(w.data, w.rows, w.columns)}),
                                w.stride, 0, y.data(), 0, size(w.rows), size(w.columns)},
      y.extent(0));
}

template <class T>
void grouped_backward_input(const Context& context, Vector<const std::int32_t> offsets,
                            const Gathered<T>& dy, const Grouped<const T>& w, Matrix<T> dx) {
  check_grouped(offsets, dy, w.rows, w, dx.extent(0), dx.extent(1), w.columns);
  if (native<&grouped_backward_input<T>>(context, offsets, dy, w, dx)) return;
  detail::grouped_gemm(
      context,
      detail::GroupedGemm<T, T>{detail::GroupedKind::backward_input, offsets.data(), size(w.count),
                                detail::StoredRows<T>(dy),
                                detail::StoredRows<T>({as_matrix(w.data, w.rows, w.columns)}),
                                w.stride, 0, dx.data(), 0, size(w.columns), size(w.rows)},
      dx.extent(0));
}

template <class T>
void grouped_backward_weight(const Context& context, Vector<const std::int32_t> offsets,
                             const Gathered<T>& dy, const Gathered<T>& x,
                             const Grouped<Accumulate<T>>& dw) {
  check_grouped(offsets, dy, dw.rows, dw, rows_of(x), x.values.extent(1), dw.columns);
  if (native<&grouped_backward_weight<T>>(context, offsets, dy, x, dw)) return;
  using Gemm = detail::GroupedGemm<T, Accumulate<T>>;
  const std::size_t rows = dy.rows.extent(0) > 0 ? dy.rows.extent(0) : dy.values.extent(0);
  detail::grouped_gemm(context,
                       Gemm{detail::GroupedKind::backward_weight, offsets.data(), size(dw.count),
                            detail::StoredRows<T>(dy), detail::StoredRows<T>(x), 0, dw.stride,
                            dw.data, size(dw.rows), size(dw.columns), 0},
                       rows);
}

template <class T>
void weighted_swiglu(const Context& context, Matrix<const T> x, Matrix<const Accumulate<T>> weights,
                     Vector<const std::int32_t> pairs, Matrix<T> y) {
  TERN_REQUIRE(x.extent(1) == 2 * y.extent(1) && pairs.extent(0) == y.extent(0) &&
                   x.extent(0) == y.extent(0),
               "({}, {}) to ({}, {}) of {} pairs", x.extent(0), x.extent(1), y.extent(0),
               y.extent(1), pairs.extent(0));
  if (native<&weighted_swiglu<T>>(context, x, weights, pairs, y)) return;
  using A = Accumulate<T>;
  const int width = size(y.extent(1));
  detail::for_each_row(
      context, "tern::weighted_swiglu", y.extent(0),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        const SwigluRow<T> in(x, weights, pairs, row);
        T* out = &y(row, 0);
        detail::columns(team, width, [=](const int i) {
          const A g = A(in.gate[i]);
          out[i] = T(in.weight * (g * sigmoid(g) * A(in.up[i])));
        });
      });
}

template <class T>
void weighted_swiglu_backward(const Context& context, Matrix<const T> x,
                              Matrix<const Accumulate<T>> weights, Vector<const std::int32_t> pairs,
                              Matrix<const T> dy, Matrix<T> dx, Matrix<Accumulate<T>> dweights) {
  check_pairs(weights, dweights, "gradients of weights");
  TERN_REQUIRE(x.extent(1) == 2 * dy.extent(1) && dx.size() == x.size() &&
                   pairs.extent(0) == dy.extent(0) && x.extent(0) == dy.extent(0),
               "({}, {}) from ({}, {}) of {} pairs", x.extent(0), x.extent(1), dy.extent(0),
               dy.extent(1), pairs.extent(0));
  if (native<&weighted_swiglu_backward<T>>(context, x, weights, pairs, dy, dx, dweights)) return;
  using A = Accumulate<T>;
  const int width = size(dy.extent(1));
  detail::for_each_row(
      context, "tern::weighted_swiglu_backward", dy.extent(0),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        const SwigluRow<T> in(x, weights, pairs, row);
        const T* dout = &dy(row, 0);
        const A dweight = detail::row_sum<A>(team, width, [=](const int i) {
          const A g = A(in.gate[i]);
          return A(dout[i]) * (g * sigmoid(g) * A(in.up[i]));
        });
        T *dgate = &dx(row, 0), *dup = dgate + width;
        detail::columns(team, width, [=](const int i) {
          const A g = A(in.gate[i]), u = A(in.up[i]), d = in.weight * A(dout[i]);
          const Logistic<A> s = logistic(g);
          dgate[i] = T(d * u * (s.value + g * s.slope));
          dup[i] = T(d * g * s.value);
        });
        Kokkos::single(Kokkos::PerThread(team), [=] { dweights.data()[pairs(row)] = dweight; });
      });
}

template <class T>
void combine(const Context& context, Matrix<const T> values, Matrix<const std::int32_t> rows,
             Matrix<const T> added, Matrix<T> to) {
  TERN_REQUIRE(rows.extent(0) == to.extent(0) && values.extent(1) == to.extent(1) &&
                   (added.extent(0) == 0 || added.size() == to.size()),
               "({}, {}) values, {} tokens, {} added, to ({}, {})", values.extent(0),
               values.extent(1), rows.extent(0), added.size(), to.extent(0), to.extent(1));
  if (native<&combine<T>>(context, values, rows, added, to)) return;
  using A = Accumulate<T>;
  const int width = size(to.extent(1)), k = size(rows.extent(1));
  const T* base = added.extent(0) > 0 ? added.data() : nullptr;
  detail::for_each_row(
      context, "tern::combine", to.extent(0), KOKKOS_LAMBDA(const Team& team, const int row) {
        const std::int32_t* of = &rows(row, 0);
        const T *from = values.data(), *onto = base ? base + std::size_t(row) * width : nullptr;
        T* out = &to(row, 0);
        detail::columns(team, width, [=](const int i) {
          A sum = 0;
          for (int j = 0; j < k; ++j) sum += A(from[std::size_t(of[j]) * width + i]);
          out[i] = T(onto ? A(onto[i]) + sum : sum);
        });
      });
}

template <class A>
void tally_experts(const Context& context, Vector<const std::int32_t> offsets,
                   Matrix<const A> probabilities, Vector<A> counts, Vector<A> sums) {
  TERN_REQUIRE(offsets.extent(0) == counts.extent(0) + 1 && sums.extent(0) == counts.extent(0) &&
                   probabilities.extent(1) == sums.extent(0),
               "{} offsets, {} counts, {} sums of {} columns", offsets.extent(0), counts.extent(0),
               sums.extent(0), probabilities.extent(1));
  Kokkos::parallel_for(
      "tern::count_pairs", Kokkos::RangePolicy<Device>(context.space, 0, size(counts.extent(0))),
      KOKKOS_LAMBDA(const int e) {
        counts(e) = static_cast<A>(offsets(e + 1) - offsets(e));
        sums(e) = 0;
      });
  detail::column_sums<A>(context, probabilities, sums);
}

template <class A>
void balance_experts(const Context& context, const ExpertBalance<A>& call) {
  const double weight = call.weight;
  const Matrix<const A> counts = call.counts, sums = call.sums;
  const Vector<A> balance = call.balance, shares = call.shares;
  check_pairs(counts, sums, "sums");
  TERN_REQUIRE(balance.extent(0) == counts.extent(1) && shares.extent(0) == counts.extent(1),
               "{} and {} for {} experts", balance.extent(0), shares.extent(0), counts.extent(1));
  const double of_pair = static_cast<double>(balance.extent(0)) /
                         (static_cast<double>(call.tokens) * static_cast<double>(call.tokens));
  const int layers = size(counts.extent(0));
  Kokkos::parallel_for(
      "tern::balance_experts",
      Kokkos::RangePolicy<Device>(context.space, 0, size(balance.extent(0))),
      KOKKOS_LAMBDA(const int e) {
        double pairs = 0, probability = 0;
        for (int l = 0; l < layers; ++l) {
          pairs += static_cast<double>(counts(l, e));
          probability += static_cast<double>(sums(l, e));
        }
        balance(e) = static_cast<A>(weight * of_pair * pairs);
        shares(e) = static_cast<A>(of_pair * pairs * probability);
      });
  weighted_sum<A>(context, Vector<const A>(shares), Vector<const A>(), call.loss);
}

#define INSTANTIATE(T)                                                        \
  template decltype(route<T>) route<T>;                                       \
  template decltype(route_backward<T>) route_backward<T>;                     \
  template decltype(grouped_forward<T>) grouped_forward<T>;                   \
  template decltype(grouped_backward_input<T>) grouped_backward_input<T>;     \
  template decltype(grouped_backward_weight<T>) grouped_backward_weight<T>;   \
  template decltype(weighted_swiglu<T>) weighted_swiglu<T>;                   \
  template decltype(weighted_swiglu_backward<T>) weighted_swiglu_backward<T>; \
  template decltype(combine<T>) combine<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)
#define INSTANTIATE_SUMS(A)                             \
  template decltype(tally_experts<A>) tally_experts<A>; \
  template decltype(balance_experts<A>) balance_experts<A>;
INSTANTIATE_SUMS(float)
INSTANTIATE_SUMS(double)

}  // namespace tern::ops
