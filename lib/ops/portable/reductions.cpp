#include "base/error.hpp"
#include "ops/portable/detail/part_sums.hpp"
#include "ops/portable/portable.hpp"

namespace tern::ops::portable {
namespace {

using detail::Team;

/// result (1) = sum of term(i) over [0, n): the sums of a fixed number of equal parts, in double,
/// then the sum of those. So the result depends neither on the number of threads nor on their
/// timing.
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
void weighted_sum(const Context& context, Vector<const A> values, Vector<const A> weights,
                  Vector<A> result) {
  const A *v = values.data(), *w = weights.data();
  const std::size_t n = values.size();
  if (weights.extent(0) == 0) {
    sum_into<A>(
        context, "sum", n, result, KOKKOS_LAMBDA(const std::size_t i) { return v[i]; });
  } else {
    sum_into<A>(
        context, "weighted_sum", n, result,
        KOKKOS_LAMBDA(const std::size_t i) { return v[i] * w[i]; });
  }
}

template <class A>
void sum_of_squares(const Context& context, Vector<const A> values, Vector<A> result) {
  const A* v = values.data();
  sum_into<A>(
      context, "sum_of_squares", values.size(), result,
      KOKKOS_LAMBDA(const std::size_t i) { return v[i] * v[i]; });
}

template <class A>
void improvement_weights(const Context& context, double unit, double base, double reward,
                         Vector<const A> losses, Vector<const std::int32_t> targets,
                         std::size_t tokens, Vector<A> weights) {
  TERN_REQUIRE(losses.size() == weights.size() && targets.size() == losses.size() && tokens > 0 &&
                   losses.size() % tokens == 0,
               "{} losses, {} targets and {} weights in sequences of {}", losses.size(),
               targets.size(), weights.size(), tokens);
  const int length = static_cast<int>(tokens);
  const A u = static_cast<A>(unit), b = static_cast<A>(base), r = static_cast<A>(reward);
  detail::for_each_row(
      context, "improvement_weights", losses.size() / tokens,
      KOKKOS_LAMBDA(const Team& team, const int sequence) {
        const std::size_t first = static_cast<std::size_t>(sequence) * tokens;
        const A* loss = losses.data() + first;
        const std::int32_t* target = targets.data() + first;
        A* weight = weights.data() + first;
        const A sum = detail::row_sum<A>(
            team, length, [=](const int i) { return target[i] < 0 ? A(0) : loss[i]; });
        const A count = detail::row_sum<A>(
            team, length, [=](const int i) { return target[i] < 0 ? A(0) : A(1); });
        const A each = u * (sum > 0 ? b + r * count / sum : b);
        detail::columns(team, length, [=](const int i) { weight[i] = each; });
      });
}

#define INSTANTIATE(A)                                                                          \
  template void weighted_sum<A>(const Context&, Vector<const A>, Vector<const A>, Vector<A>);   \
  template void sum_of_squares<A>(const Context&, Vector<const A>, Vector<A>);                  \
  template void improvement_weights<A>(const Context&, double, double, double, Vector<const A>, \
                                       Vector<const std::int32_t>, std::size_t, Vector<A>);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tern::ops::portable
