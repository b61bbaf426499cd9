/// Sums over long ranges, in parts, one per team.
#pragma once
#include "ops/core/portable/loops.hpp"

namespace tern::ops::portable::detail {

/// Sum of term(i) over [begin, end), in double, by one team; independent of the number of threads
/// and their timing.
template <class A, class F>
KOKKOS_INLINE_FUNCTION double sum_of(const Team& team, std::size_t begin, std::size_t end,
                                     const F& term) {
  double sum = 0;
  if constexpr (on_host) {
    constexpr std::size_t block = 4096;  // summed in A, and short enough for it
    for (std::size_t b = begin; b < end; b += block) {
      const int count = static_cast<int>(Kokkos::min(block, end - b));
      const F f = term;  // a local copy, or the compiler reads it again for each element
      sum += static_cast<double>(row_sum<A>(team, count, [=](const int i) { return f(b + i); }));
    }
  } else {
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, end - begin),
        [&](const std::size_t i, double& s) { s += static_cast<double>(term(begin + i)); }, sum);
  }
  return sum;
}

}  // namespace tern::ops::portable::detail
