/// Matrix product for storage types that BLAS lacks: tiles are widened to Accumulate<T> in team
/// scratch and multiplied there.
#pragma once
#include "ops/core/context.hpp"
#include "ops/core/portable/loops.hpp"

namespace tern::ops::portable::detail {

/// Operand read as (i, k): i is the result's row or column, k the summed index.
template <class T>
struct Operand {
  const T* data;
  std::size_t stride, stride_k;
};

/// c = alpha (sum over k of a(i, k) b(j, k)) + beta `added`, which is not read if beta is 0.
template <class C>
struct Scaling {
  Accumulate<C> alpha, beta;
  const C* added;  // shaped as c
};

/// Batch of products of equal shapes: element strides between matrices.
struct Strides {
  int count;
  std::size_t a, b, c;
};

/// c (M, N) = a (M, K) b (N, K)^T, scaled, for each product of a batch. A team computes one tile of
/// a c, each thread a register block of it.
template <class T, class C>
struct TiledGemm {
  using A = Accumulate<T>;
  // 48 KiB of a GPU's scratch hold the tiles and their sums.
  static constexpr int tile = !on_host && sizeof(A) == 8 ? 32 : 64, depth = 32;
  static constexpr int rows = 4, cols = on_host ? 64 : 4;  // register block of a thread
  static constexpr int parts = tile / rows * (tile / cols);
  using Tile = Kokkos::View<A[depth][tile + 1], Kokkos::LayoutRight, Device::scratch_memory_space,
                            Unmanaged>;
  using Sums =
      Kokkos::View<A[tile][tile], Kokkos::LayoutRight, Device::scratch_memory_space, Unmanaged>;

  Operand<T> a, b;
  C* c;
  int m, n, k;
  Scaling<C> scaling;
  Strides strides;

  static std::size_t scratch() { return 2 * Tile::shmem_size() + Sums::shmem_size(); }

  KOKKOS_FUNCTION void load(const Team& team, const Tile& to, const Operand<T>& from, int first,
                            int extent, int k0) const {
    // Coalesced reads, whichever index is contiguous.
    const bool k_fast = from.stride_k == 1;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile * depth), [&](const int e) {
      const int kk = k_fast ? e % depth : e / tile, i = k_fast ? e / depth : e % tile;
      const bool inside = first + i < extent && k0 + kk < k;
      to(kk, i) =
          inside ? A(from.data[(first + i) * from.stride + (k0 + kk) * from.stride_k]) : A(0);
    });
  }

  KOKKOS_FUNCTION void multiply(int part, const Tile& ta, const Tile& tb, const Sums& sums) const {
    const int i0 = part / (tile / cols) * rows, j0 = part % (tile / cols) * cols;
    A sum[rows][cols];
    for (int i = 0; i < rows; ++i) {
      TERN_SIMD
      for (int j = 0; j < cols; ++j) sum[i][j] = sums(i0 + i, j0 + j);
    }
    for (int kk = 0; kk < depth; ++kk) {
      const A* bk = &tb(kk, j0);
      for (int i = 0; i < rows; ++i) {
        const A ai = ta(kk, i0 + i);
        TERN_SIMD
        for (int j = 0; j < cols; ++j) sum[i][j] += ai * bk[j];
      }
    }
    for (int i = 0; i < rows; ++i) {
      TERN_SIMD
      for (int j = 0; j < cols; ++j) sums(i0 + i, j0 + j) = sum[i][j];
    }
  }

  KOKKOS_FUNCTION void store(const Team& team, const Sums& sums, std::size_t first, int i0,
                             int j0) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile * tile), [&](const int e) {
      const int i = i0 + e / tile, j = j0 + e % tile;
      if (i >= m || j >= n) return;
      const std::size_t at = first + static_cast<std::size_t>(i) * n + j;
      const A sum = scaling.alpha * sums(e / tile, e % tile);
      c[at] = C(scaling.beta != 0 ? scaling.beta * A(scaling.added[at]) + sum : sum);
    });
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const Tile ta(team.team_scratch(0)), tb(team.team_scratch(0));
    const Sums sums(team.team_scratch(0));
    const int across = (n + tile - 1) / tile, tiles = (m + tile - 1) / tile * across;
    const std::size_t which = team.league_rank() / tiles;
    const int mine = team.league_rank() % tiles;
    const int i0 = mine / across * tile, j0 = mine % across * tile;
    Operand<T> left = a, right = b;
    left.data += which * strides.a, right.data += which * strides.b;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile * tile),
                         [&](const int e) { sums(e / tile, e % tile) = 0; });
    for (int k0 = 0; k0 < k; k0 += depth) {
      team.team_barrier();
      load(team, ta, left, i0, m, k0);
      load(team, tb, right, j0, n, k0);
      team.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, parts),
                           [&](const int part) { multiply(part, ta, tb, sums); });
    }
    team.team_barrier();
    store(team, sums, which * strides.c, i0, j0);
  }
};

template <class T, class C>
void tiled_gemm(const Context& context, Operand<T> a, Operand<T> b, Matrix<C> c, std::size_t k,
                Scaling<C> scaling, Strides strides) {
  using Gemm = TiledGemm<T, C>;
  const int m = static_cast<int>(c.extent(0)), n = static_cast<int>(c.extent(1));
  const int tiles = (m + Gemm::tile - 1) / Gemm::tile * ((n + Gemm::tile - 1) / Gemm::tile);
  if (tiles * strides.count == 0) return;
  Kokkos::TeamPolicy<Device> policy(context.space, tiles * strides.count,
                                    on_host ? 1 : Gemm::parts);
  policy.set_scratch_size(0, Kokkos::PerTeam(Gemm::scratch()));
  Kokkos::parallel_for("tern::gemm", policy,
                       Gemm{a, b, c.data(), m, n, static_cast<int>(k), scaling, strides});
}

/// One product, written or added to c.
template <class T, class C>
void tiled_gemm(const Context& context, Operand<T> a, Operand<T> b, Matrix<C> c, std::size_t k,
                Write write) {
  const Accumulate<C> keep = write == Write::add ? 1 : 0;
  tiled_gemm<T, C>(context, a, b, c, k, Scaling<C>{1, keep, c.data()}, Strides{1, 0, 0, 0});
}

}  // namespace tern::ops::portable::detail
