/// Loops of the portable kernels, shaped by the execution space: on the host a team is one thread
/// that takes some rows and vectorizes over the columns; on a device a row belongs to one warp.
#pragma once
#include <Kokkos_Core.hpp>

#include "ops/core/context.hpp"

// Device compilers know no simd pragma; there the lanes of a warp take its place.
#if defined(_OPENMP) && !defined(__device__)
#define TERN_SIMD _Pragma("omp simd")
#define TERN_SIMD_SUM(x) TERN_SIMD_PRAGMA(omp simd reduction(+ : x))
#define TERN_SIMD_MAX(x) TERN_SIMD_PRAGMA(omp simd reduction(max : x))
#define TERN_SIMD_PRAGMA(text) _Pragma(#text)
#else
#define TERN_SIMD
#define TERN_SIMD_SUM(x)
#define TERN_SIMD_MAX(x)
#endif

namespace tern::ops::portable::detail {

using tern::on_host;

using Team = Kokkos::TeamPolicy<Device>::member_type;

// ---- elementwise

/// Elements per work item: a block of vectors on the host, one element on a device.
constexpr std::size_t block_size = on_host ? 2048 : 1;

template <class F>
struct Blocks {
  F body;
  std::size_t n;

  KOKKOS_FUNCTION void operator()(const std::size_t block) const {
    const std::size_t begin = block * block_size;
    body(begin, Kokkos::min(n, begin + block_size));
  }
};

/// body(begin, end) for the blocks of [0, n): for kernels that do something once per block.
template <class F>
void for_each_block(const Context& context, const char* label, std::size_t n, const F& body) {
  Kokkos::RangePolicy<Device, Kokkos::IndexType<std::size_t>> policy(
      context.space, 0, (n + block_size - 1) / block_size);
  Kokkos::parallel_for(label, policy, Blocks<F>{body, n});
}

template <class F>
struct Elements {
  F body;

  KOKKOS_FUNCTION void operator()(const std::size_t begin, const std::size_t end) const {
    TERN_SIMD
    for (std::size_t i = begin; i < end; ++i) body(i);
  }
};

/// body(i) for i in [0, n), independent of each other.
template <class F>
void for_each(const Context& context, const char* label, std::size_t n, const F& body) {
  for_each_block(context, label, n, Elements<F>{body});
}

// ---- rows

template <class F>
struct Rows {
  F body;
  int n;
  static constexpr int size = on_host ? 16 : 8;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int begin = team.league_rank() * size, end = begin + size < n ? begin + size : n;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, begin, end),
                         [&](const int row) { body(team, row); });
  }
};

/// body(team, row) for row in [0, n); inside it, the columns() and row_*() loops below.
template <class F>
void for_each_row(const Context& context, const char* label, std::size_t n, const F& body) {
  using Loop = Rows<F>;
  if (n == 0) return;
  const int leagues = static_cast<int>((n + Loop::size - 1) / Loop::size);
  Kokkos::TeamPolicy<Device> policy(context.space, leagues, on_host ? 1 : Loop::size,
                                    on_host ? 1 : 32);
  Kokkos::parallel_for(label, policy, Loop{body, static_cast<int>(n)});
}

/// f(i) for the columns i of one row, independent of each other.
template <class F>
KOKKOS_INLINE_FUNCTION void columns(const Team& team, int n, const F& f) {
  if constexpr (on_host) {
    TERN_SIMD
    for (int i = 0; i < n; ++i) f(i);
  } else {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, n), f);
  }
}

/// Sum of f(i) over the columns, on all lanes. The order depends only on n.
template <class A, class F>
KOKKOS_INLINE_FUNCTION A row_sum(const Team& team, int n, const F& f) {
  A sum = 0;
  if constexpr (on_host) {
    TERN_SIMD_SUM(sum)
    for (int i = 0; i < n; ++i) sum += f(i);
  } else {
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, n), [&](const int i, A& partial) { partial += f(i); }, sum);
  }
  return sum;
}

/// Largest f(i) over the columns; -infinity without columns. NaN is ignored.
template <class A, class F>
KOKKOS_INLINE_FUNCTION A row_max(const Team& team, int n, const F& f) {
  A largest = -Kokkos::Experimental::infinity_v<A>;
  if constexpr (on_host) {
    TERN_SIMD_MAX(largest)
    for (int i = 0; i < n; ++i) {
      const A value = f(i);
      largest = value > largest ? value : largest;
    }
  } else {
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, n),
        [&](const int i, A& partial) {
          const A value = f(i);
          if (value > partial) partial = value;
        },
        Kokkos::Max<A>(largest));
  }
  return largest;
}

}  // namespace tern::ops::portable::detail
