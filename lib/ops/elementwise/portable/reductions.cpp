#include "base/error.hpp"
#include "ops/core/portable/part_sums.hpp"
#include "ops/elementwise/elementwise.hpp"

namespace tern::ops {
using namespace portable;
namespace {

using detail::Team;

/// result (1) = sum of term(i) over [0, n): a fixed number of equal partial sums in double, then
/// their sum. Independent of the number of threads and their timing.
template <class A, class F>
struct PartSums {
  F term;
  std::size_t n, length;
  Vector<double> parts;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::size_t begin = Kokkos::min(n, team.league_rank() * length);
    const std::size_t end = Kokkos::min(n, begin + length);
    const double sum = detail::sum_of<A>(team, begin, end, term);
    Kokkos::single(Kokkos::PerTeam(team), [&] { parts(team.league_rank()) = sum; });
  }
};

template <class A, class F>
void sum_into(const Context& context, const char* label, std::size_t n, Vector<A> result,
              const F& term) {
  const Vector<double> parts = context.partial_sums;
  TERN_REQUIRE(parts.size() > 0, "sums need a context of make_context()");
  const int count = static_cast<int>(parts.size());
  const std::size_t length = (n + count - 1) / count;
  Kokkos::TeamPolicy<Device> policy(context.space, count, detail::on_host ? 1 : 8,
                                    detail::on_host ? 1 : 32);
  Kokkos::parallel_for(label, policy, PartSums<A, F>{term, n, length, parts});
  Kokkos::parallel_for(
      label, Kokkos::RangePolicy<Device>(context.space, 0, 1), KOKKOS_LAMBDA(const int) {
        double sum = 0;
        for (int i = 0; i < count; ++i) sum += parts(i);
        result(0) = static_cast<A>(sum);
      });
}

}  // namespace

template <class A>
void WeightedSum<A>::portable(const Context& context, const WeightedSum& call) {
  const A *v = call.values.data(), *w = call.weights.data();
  const std::size_t n = call.values.size();
  if (call.weights.extent(0) == 0) {
    sum_into<A>(
        context, "tern::weighted_sum", n, call.result,
        KOKKOS_LAMBDA(const std::size_t i) { return v[i]; });
  } else {
    sum_into<A>(
        context, "tern::weighted_sum", n, call.result,
        KOKKOS_LAMBDA(const std::size_t i) { return v[i] * w[i]; });
  }
}

template <class A>
void SumOfSquares<A>::portable(const Context& context, const SumOfSquares& call) {
  const A* v = call.values.data();
  sum_into<A>(
      context, "tern::sum_of_squares", call.values.size(), call.result,
      KOKKOS_LAMBDA(const std::size_t i) { return v[i] * v[i]; });
}

TERN_INSTANTIATE_SUMS(WeightedSum)
TERN_INSTANTIATE_SUMS(SumOfSquares)

}  // namespace tern::ops
