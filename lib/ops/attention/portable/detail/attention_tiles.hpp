/// Tile sizes of the attention kernels, and transfers of tiles between views and scratch memory.
#pragma once
#include <type_traits>

#include "base/error.hpp"
#include "ops/attention/pattern.hpp"
#include "ops/core/context.hpp"
#include "ops/core/portable/tile_product.hpp"

namespace tern::ops::portable::attention {

/// Where kernels run: on the host a team is one thread, its scratch is in the caches, and packs do
/// the work of a warp. All choices are functions of Processor, so tests on the host cover the GPU's.
enum class Processor { host, gpu };
constexpr Processor processor =
    std::is_same_v<DeviceMemory, Kokkos::HostSpace> ? Processor::host : Processor::gpu;

constexpr std::size_t scratch_alignment = 64;
/// Shared memory available to a GPU team (Kokkos provides 48 KiB and keeps some of it).
constexpr std::size_t gpu_scratch_bytes = 40 * 1024;

/// Checks the shapes of forward and backward.
template <class Q, class K>
void require_shapes(const Pattern& pattern, const Q& q, const K& k) {
  TERN_REQUIRE(k.extent(2) > 0 && q.extent(2) % k.extent(2) == 0, "{} heads, {} key heads",
               q.extent(2), k.extent(2));
  TERN_REQUIRE(pattern.kind != Pattern::Kind::spans ||
                   static_cast<std::size_t>(pattern.queries) == q.extent(1),
               "a pattern of {} queries, {} queries", pattern.queries, q.extent(1));
}

/// The three passes. Own axis: queries in the first two, keys in the third.
enum class Pass { forward, backward_query, backward_key };

/// A team holds `own` rows of the own axis and steps through the other axis by `other`.
struct TileShape {
  int own, other;
};

/// Row stride of a tile in scratch; on a GPU padded by one against bank conflicts.
KOKKOS_INLINE_FUNCTION constexpr int tile_stride(Processor at, int width) {
  return at == Processor::host ? width : width + 1;
}

/// Number of scratch arrays of a pass. tall (E, own): q, out; q, dout, dq; k, v, dk, dv. wide
/// (other, own): weights, their gradient. rows (own): the softmax's largest, total and factor; lse
/// and delta.
struct Arrays {
  int tall, wide, rows;
};
constexpr Arrays arrays(Pass pass) {
  if (pass == Pass::forward) return {2, 1, 3};
  return pass == Pass::backward_query ? Arrays{3, 2, 2} : Arrays{4, 2, 0};
}

/// Scratch of a team: the arrays and a copy of one tile (other, E) of the other axis, each aligned.
constexpr std::size_t scratch_bytes(Processor at, Pass pass, TileShape tile, int head_size,
                                    std::size_t number_bytes) {
  const auto [tall, wide, rows] = arrays(pass);
  const auto bytes = [&](int height, int width) {
    const std::size_t n = static_cast<std::size_t>(height) * tile_stride(at, width) * number_bytes;
    return (n + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
  };
  return tall * bytes(head_size, tile.own) + wide * bytes(tile.other, tile.own) +
         rows * bytes(1, tile.own) + bytes(tile.other, head_size) + scratch_alignment;
}

/// Tile of a pass over `length` own rows. Host: 16, 32 or 64 by length. GPU: the widest whose
/// scratch fits shared memory; 8, with level 1 scratch, where none does.
constexpr TileShape tile_shape(Processor at, Pass pass, int length, int head_size,
                               std::size_t number_bytes) {
  if (at == Processor::host) return {length <= 16 ? 16 : length < 512 ? 32 : 64, 128};
  for (int own = 32; own > 8; own /= 2)
    if (scratch_bytes(at, pass, {own, 16}, head_size, number_bytes) <= gpu_scratch_bytes)
      return {own, 16};
  return {8, 8};
}
/// Level 0 is a GPU's shared memory, level 1 its global memory; on the host both are the same.
constexpr int scratch_level(Processor at, std::size_t bytes) {
  return at == Processor::host || bytes <= gpu_scratch_bytes ? 0 : 1;
}
constexpr int team_size(Processor at) { return at == Processor::host ? 1 : 128; }

/// Calls run(std::integral_constant<int, own>) for the widths that tile_shape may give.
template <class Run>
void with_own_width(int own, Run&& run) {
  if constexpr (processor == Processor::host) {
    if (own == 64) return run(std::integral_constant<int, 64>{});
    if (own == 32) return run(std::integral_constant<int, 32>{});
    run(std::integral_constant<int, 16>{});
  } else {
    if (own == 32) return run(std::integral_constant<int, 32>{});
    if (own == 16) return run(std::integral_constant<int, 16>{});
    run(std::integral_constant<int, 8>{});
  }
}

/// Range [first, last) of the other axis that holds a tile's allowed pairs, and its kind.
struct Span {
  int first, last;
  Tile seen;
};
/// Shrinks [first, last) to where `tile(first, last)` is not none, in quarters of `step`.
template <class F>
KOKKOS_INLINE_FUNCTION Span seen_span(int first, int last, int step, const F& tile) {
  Tile seen = tile(first, last);
  if (seen != Tile::mixed) return {first, last, seen};
  const int part = step / 4;
  while (first + part < last && tile(first, first + part) == Tile::none) first += part;
  while (first < last) {
    const int begin = first + (last - first - 1) / part * part;
    if (tile(begin, last) != Tile::none) break;
    last = begin;
  }
  return {first, last, first < last ? Tile::mixed : Tile::none};
}

/// Launches a kernel of `league` teams.
template <class Kernel>
void launch_teams(const Context& context, const char* name, int league, int level,
                  std::size_t bytes, const Kernel& kernel) {
  using Policy = Kokkos::TeamPolicy<Device>;
  Policy policy(context.space, league, team_size(processor));
  policy.set_scratch_size(level, Kokkos::PerTeam(static_cast<int>(bytes)));
  Kokkos::parallel_for(name, policy, kernel);
}

/// Carves arrays out of a team's scratch.
template <class A>
class Scratch {
 public:
  KOKKOS_FUNCTION Scratch(const Team& team, int level, std::size_t bytes)
      : next_(static_cast<char*>(team.team_scratch(level).get_shmem_aligned(
            static_cast<std::ptrdiff_t>(bytes - scratch_alignment),
            static_cast<std::ptrdiff_t>(scratch_alignment)))) {}
  KOKKOS_FUNCTION A* take(std::size_t numbers) {
    A* array = reinterpret_cast<A*>(next_);
    next_ += (numbers * sizeof(A) + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
    return array;
  }

 private:
  char* next_;
};

/// Rows of one head, as a pointer with a row stride.
template <class T>
struct Rows {
  T* data;
  std::ptrdiff_t stride;
};
template <class T>
KOKKOS_INLINE_FUNCTION Rows<T> head_rows(const Heads<T>& x, int batch, int head, int first) {
  return {x.data() + batch * static_cast<std::ptrdiff_t>(x.stride(0)) +
              first * static_cast<std::ptrdiff_t>(x.stride(1)) +
              head * static_cast<std::ptrdiff_t>(x.stride(2)),
          static_cast<std::ptrdiff_t>(x.stride(1))};
}

/// tile (E, Own) = factor * rows^T, zeros beyond `rows`. Ends with a barrier.
template <int Own, class T, class A>
KOKKOS_INLINE_FUNCTION void load_own(const Team& team, Rows<const T> from, int rows, int head_size,
                                     A factor, A* tile, int stride) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, Own), [&](int n) {
    for (int e = 0; e < head_size; ++e)
      tile[e * stride + n] =
          n < rows ? factor * static_cast<A>(from.data[n * from.stride + e]) : A(0);
  });
  team.team_barrier();
}

/// rows = factor * tile^T.
template <class T, class A>
KOKKOS_INLINE_FUNCTION void store_own(const Team& team, const A* tile, int stride, A factor,
                                      Rows<T> to, int rows, int head_size) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int n) {
    for (int e = 0; e < head_size; ++e)
      to.data[n * to.stride + e] = static_cast<T>(factor * tile[e * stride + n]);
  });
}

/// The other axis as a broadcast operand (rows, E): in place where the host can compute with it,
/// else copied to `staged`. Ends with a barrier if it copies; the caller's last use of `staged`
/// must also have ended with one.
template <class T, class A>
KOKKOS_INLINE_FUNCTION Operand<A> stage_other(const Team& team, Rows<const T> from, int rows,
                                              int head_size, A* staged) {
  if constexpr (processor == Processor::host && std::is_same_v<T, A>) {
    return {from.data, from.stride, 1};
  } else {
    const int stride = tile_stride(processor, head_size);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int row) {
      for (int e = 0; e < head_size; ++e)
        staged[row * stride + e] = static_cast<A>(from.data[row * from.stride + e]);
    });
    team.team_barrier();
    return {staged, stride, 1};
  }
}
/// Dot product in sixteen partial sums, in a fixed order, so that the host can vectorize it.
template <class T>
KOKKOS_INLINE_FUNCTION Accumulate<T> row_dot(const T* x, const T* y, int size) {
  using A = Accumulate<T>;
  constexpr int width = 16;
  A part[width] = {};
  int e = 0;
  for (; e + width <= size; e += width)
    for (int i = 0; i < width; ++i) part[i] += static_cast<A>(x[e + i]) * static_cast<A>(y[e + i]);
  A total = 0;
  for (; e < size; ++e) total += static_cast<A>(x[e]) * static_cast<A>(y[e]);
  for (int half = width / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) part[i] += part[i + half];
  return total + part[0];
}

template <class A>
KOKKOS_INLINE_FUNCTION Operand<A> transposed(Operand<A> a) {
  return {a.data, a.column, a.row};
}

}  // namespace tern::ops::portable::attention
