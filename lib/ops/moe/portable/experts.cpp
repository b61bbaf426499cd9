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
struct RouteRows {
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
struct SortPairsOfExpert {
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

/// Checks the shapes of a product of R rows of `in` with X matrices into rows of `out`.
template <class T, class W>
void check_grouped(const Vector<const std::int32_t>& offsets, const Gathered<T>& in,
                   std::size_t width, const W& w, std::size_t rows, std::size_t out,
                   std::size_t to) {
  TERN_REQUIRE(offsets.extent(0) == w.count + 1 && w.count > 0, "{} offsets for {} matrices",
               offsets.extent(0), w.count);
  TERN_REQUIRE(in.values.extent(1) == width && out == to && in.count() == rows &&
                   w.stride >= w.rows * w.columns,
               "{} rows of {} by ({}, {}), {} apart, to {} rows of {}", in.count(),
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
void Route<T>::check() const {
  check_pairs(experts, weights, "weights");
  TERN_REQUIRE(experts.extent(0) == logits.extent(0) && experts.extent(1) > 0 &&
                   experts.extent(1) <= logits.extent(1) && probabilities.size() == logits.size(),
               "({}, {}) logits, {} probabilities, ({}, {}) experts", logits.extent(0),
               logits.extent(1), probabilities.size(), experts.extent(0), experts.extent(1));
}

template <class T>
void Route<T>::portable(const Context& context, const Route& call) {
  detail::for_each_row(
      context, "tern::route", call.logits.extent(0),
      RouteRows<T>{call.renormalize, call.logits, call.probabilities, call.weights, call.experts});
}

template <class T>
void RouteBackward<T>::check() const {
  check_pairs(experts, weights, "weights");
  check_pairs(experts, dweights, "gradients of weights");
  TERN_REQUIRE(probabilities.size() == dlogits.size() &&
                   probabilities.extent(0) == experts.extent(0) &&
                   (balance.extent(0) == 0 || balance.extent(0) == dlogits.extent(1)),
               "{} probabilities, ({}, {}) gradients of logits, {} of balance",
               probabilities.size(), dlogits.extent(0), dlogits.extent(1), balance.extent(0));
}

template <class T>
void RouteBackward<T>::portable(const Context& context, const RouteBackward& call) {
  detail::for_each_row(
      context, "tern::route_backward", call.dlogits.extent(0),
      RouteBackwardRows<T>{call.renormalize, call.probabilities, call.experts, call.weights,
                           call.dweights, call.balance, call.dlogits});
}

void SortPairs::check() const {
  const std::size_t pairs = routing.experts.size();
  TERN_REQUIRE(routing.pairs.extent(0) == pairs && routing.tokens.extent(0) == pairs &&
                   routing.rows.size() == pairs && routing.offsets.extent(0) > 1,
               "{} experts, {} pairs, {} tokens, {} rows, {} offsets", pairs,
               routing.pairs.extent(0), routing.tokens.extent(0), routing.rows.size(),
               routing.offsets.extent(0));
}

void SortPairs::portable(const Context& context, const SortPairs& call) {
  const int groups = size(call.routing.offsets.extent(0)) - 1;
  Kokkos::TeamPolicy<Device> policy(context.space, groups, detail::on_host ? 1 : 256);
  Kokkos::parallel_for("tern::sort_pairs", policy, SortPairsOfExpert{call.routing});
}

template <class T>
void GroupedForward<T>::check() const {
  check_grouped(offsets, x, w.columns, w, y.extent(0), y.extent(1), w.rows);
}

template <class T>
void GroupedForward<T>::portable(const Context& context, const GroupedForward& call) {
  detail::grouped_gemm(
      context,
      detail::GroupedGemm<T, T>{
          detail::GroupedKind::forward, call.offsets.data(), size(call.w.count),
          detail::StoredRows<T>(call.x),
          detail::StoredRows<T>({as_matrix(call.w.data, call.w.rows, call.w.columns)}),
          call.w.stride, 0, call.y.data(), 0, size(call.w.rows), size(call.w.columns)},
      call.y.extent(0));
}

template <class T>
void GroupedBackwardInput<T>::check() const {
  check_grouped(offsets, dy, w.rows, w, dx.extent(0), dx.extent(1), w.columns);
}

template <class T>
void GroupedBackwardInput<T>::portable(const Context& context, const GroupedBackwardInput& call) {
  detail::grouped_gemm(
      context,
      detail::GroupedGemm<T, T>{
          detail::GroupedKind::backward_input, call.offsets.data(), size(call.w.count),
          detail::StoredRows<T>(call.dy),
          detail::StoredRows<T>({as_matrix(call.w.data, call.w.rows, call.w.columns)}),
          call.w.stride, 0, call.dx.data(), 0, size(call.w.columns), size(call.w.rows)},
      call.dx.extent(0));
}

template <class T>
void GroupedBackwardWeight<T>::check() const {
  check_grouped(offsets, dy, dw.rows, dw, x.count(), x.values.extent(1), dw.columns);
}

template <class T>
void GroupedBackwardWeight<T>::portable(const Context& context, const GroupedBackwardWeight& call) {
  using Gemm = detail::GroupedGemm<T, Accumulate<T>>;
  detail::grouped_gemm(
      context,
      Gemm{detail::GroupedKind::backward_weight, call.offsets.data(), size(call.dw.count),
           detail::StoredRows<T>(call.dy), detail::StoredRows<T>(call.x), 0, call.dw.stride,
           call.dw.data, size(call.dw.rows), size(call.dw.columns), 0},
      call.dy.count());
}

template <class T>
void WeightedSwiglu<T>::check() const {
  TERN_REQUIRE(x.extent(1) == 2 * y.extent(1) && pairs.extent(0) == y.extent(0) &&
                   x.extent(0) == y.extent(0),
               "({}, {}) to ({}, {}) of {} pairs", x.extent(0), x.extent(1), y.extent(0),
               y.extent(1), pairs.extent(0));
}

template <class T>
void WeightedSwiglu<T>::portable(const Context& context, const WeightedSwiglu& call) {
  using A = Accumulate<T>;
  const int width = size(call.y.extent(1));
  detail::for_each_row(
      context, "tern::weighted_swiglu", call.y.extent(0),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        const SwigluRow<T> in(call.x, call.weights, call.pairs, row);
        T* out = &call.y(row, 0);
        detail::columns(team, width, [=](const int i) {
          const A g = A(in.gate[i]);
          out[i] = T(in.weight * (g * sigmoid(g) * A(in.up[i])));
        });
      });
}

template <class T>
void WeightedSwigluBackward<T>::check() const {
  check_pairs(weights, dweights, "gradients of weights");
  TERN_REQUIRE(x.extent(1) == 2 * dy.extent(1) && dx.size() == x.size() &&
                   pairs.extent(0) == dy.extent(0) && x.extent(0) == dy.extent(0),
               "({}, {}) from ({}, {}) of {} pairs", x.extent(0), x.extent(1), dy.extent(0),
               dy.extent(1), pairs.extent(0));
}

template <class T>
void WeightedSwigluBackward<T>::portable(const Context& context,
                                         const WeightedSwigluBackward& call) {
  using A = Accumulate<T>;
  const int width = size(call.dy.extent(1));
  detail::for_each_row(
      context, "tern::weighted_swiglu_backward", call.dy.extent(0),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        const SwigluRow<T> in(call.x, call.weights, call.pairs, row);
        const T* dout = &call.dy(row, 0);
        const A dweight = detail::row_sum<A>(team, width, [=](const int i) {
          const A g = A(in.gate[i]);
          return A(dout[i]) * (g * sigmoid(g) * A(in.up[i]));
        });
        T *dgate = &call.dx(row, 0), *dup = dgate + width;
        detail::columns(team, width, [=](const int i) {
          const A g = A(in.gate[i]), u = A(in.up[i]), d = in.weight * A(dout[i]);
          const Logistic<A> s = logistic(g);
          dgate[i] = T(d * u * (s.value + g * s.slope));
          dup[i] = T(d * g * s.value);
        });
        Kokkos::single(Kokkos::PerThread(team),
                       [=] { call.dweights.data()[call.pairs(row)] = dweight; });
      });
}

template <class T>
void Combine<T>::check() const {
  TERN_REQUIRE(rows.extent(0) == to.extent(0) && values.extent(1) == to.extent(1) &&
                   (added.extent(0) == 0 || added.size() == to.size()),
               "({}, {}) values, {} tokens, {} added, to ({}, {})", values.extent(0),
               values.extent(1), rows.extent(0), added.size(), to.extent(0), to.extent(1));
}

template <class T>
void Combine<T>::portable(const Context& context, const Combine& call) {
  using A = Accumulate<T>;
  const int width = size(call.to.extent(1)), k = size(call.rows.extent(1));
  const T* base = call.added.extent(0) > 0 ? call.added.data() : nullptr;
  detail::for_each_row(
      context, "tern::combine", call.to.extent(0), KOKKOS_LAMBDA(const Team& team, const int row) {
        const std::int32_t* of = &call.rows(row, 0);
        const T *from = call.values.data(),
                *onto = base ? base + std::size_t(row) * width : nullptr;
        T* out = &call.to(row, 0);
        detail::columns(team, width, [=](const int i) {
          A sum = 0;
          for (int j = 0; j < k; ++j) sum += A(from[std::size_t(of[j]) * width + i]);
          out[i] = T(onto ? A(onto[i]) + sum : sum);
        });
      });
}

template <class A>
void TallyExperts<A>::check() const {
  TERN_REQUIRE(offsets.extent(0) == counts.extent(0) + 1 && sums.extent(0) == counts.extent(0) &&
                   probabilities.extent(1) == sums.extent(0),
               "{} offsets, {} counts, {} sums of {} columns", offsets.extent(0), counts.extent(0),
               sums.extent(0), probabilities.extent(1));
}

template <class A>
void TallyExperts<A>::portable(const Context& context, const TallyExperts& call) {
  Kokkos::parallel_for(
      "tern::count_pairs",
      Kokkos::RangePolicy<Device>(context.space, 0, size(call.counts.extent(0))),
      KOKKOS_LAMBDA(const int e) {
        call.counts(e) = static_cast<A>(call.offsets(e + 1) - call.offsets(e));
        call.sums(e) = 0;
      });
  detail::column_sums<A>(context, call.probabilities, call.sums);
}

template <class A>
void ExpertBalance<A>::check() const {
  check_pairs(counts, sums, "sums");
  TERN_REQUIRE(balance.extent(0) == counts.extent(1) && shares.extent(0) == counts.extent(1),
               "{} and {} for {} experts", balance.extent(0), shares.extent(0), counts.extent(1));
}

template <class A>
void ExpertBalance<A>::portable(const Context& context, const ExpertBalance& call) {
  const double weight = call.weight;
  const Matrix<const A> counts = call.counts, sums = call.sums;
  const Vector<A> balance = call.balance, shares = call.shares;
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
  run(context,
      WeightedSum<A>{
          .values = Vector<const A>(shares), .weights = Vector<const A>(), .result = call.loss});
}

TERN_INSTANTIATE_PORTABLE(Route)
TERN_INSTANTIATE_PORTABLE(RouteBackward)
TERN_INSTANTIATE_PORTABLE(GroupedForward)
TERN_INSTANTIATE_PORTABLE(GroupedBackwardInput)
TERN_INSTANTIATE_PORTABLE(GroupedBackwardWeight)
TERN_INSTANTIATE_PORTABLE(WeightedSwiglu)
TERN_INSTANTIATE_PORTABLE(WeightedSwigluBackward)
TERN_INSTANTIATE_PORTABLE(Combine)
TERN_INSTANTIATE_SUMS(TallyExperts)
TERN_INSTANTIATE_SUMS(ExpertBalance)

}  // namespace tern::ops
