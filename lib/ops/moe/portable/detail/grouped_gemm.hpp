/// Grouped GEMM, whose group sizes are known only on the device.
#pragma once
#include "ops/core/portable/tile_product.hpp"
#include "ops/core/portable/tiled_gemm.hpp"
#include "ops/moe/experts.hpp"

namespace tern::ops::portable::detail {

enum class GroupedKind { forward, backward_input, backward_weight };

/// Operand as stored: rows of contiguous numbers.
template <class T>
struct StoredRows {
  const T* data;
  std::size_t width;
  const std::int32_t* rows;  // null: in order

  explicit StoredRows(const Gathered<T>& g)
      : data(g.values.data()),
        width(g.values.extent(1)),
        rows(g.rows.extent(0) > 0 ? g.rows.data() : nullptr) {}
  KOKKOS_INLINE_FUNCTION const T* at(std::size_t row) const {
    return data + (rows ? static_cast<std::size_t>(rows[row]) : row) * width;
  }
};

/// Grouped products of experts.hpp. A team computes one tile of a group's result from tiles in
/// scratch, as TiledGemm does. Where groups divide the result's rows, there are as many teams as
/// there can be tiles, and each finds its group from the offsets.
template <class T, class C>
struct GroupedGemm {
  using A = Accumulate<T>;
  using Gemm = TiledGemm<T, C>;
  static constexpr int tile = Gemm::tile, depth = Gemm::depth;

  GroupedKind kind;
  const std::int32_t* offsets;
  int groups;
  StoredRows<T> a, b;
  std::size_t group_b, group_c;  // element strides between the groups' matrices
  C* c;
  int m, n, k;  // m or k is the group's number of rows

  /// A tile of the result: rows from i0, columns from j0.
  struct GroupTile {
    int group = -1, first = 0, i0 = 0, j0 = 0, m = 0, k = 0;
  };

  KOKKOS_FUNCTION GroupTile place(int team) const {
    GroupTile p;
    const int across = (n + tile - 1) / tile;
    p.j0 = team % across * tile;
    int down = team / across;
    if (kind == GroupedKind::backward_weight) {
      const int tiles = (m + tile - 1) / tile;
      p.group = down / tiles;
      p.i0 = down % tiles * tile;
      p.first = offsets[p.group];
      p.m = m;
      p.k = offsets[p.group + 1] - p.first;
      return p;
    }
    for (int g = 0; g < groups; ++g) {
      const int rows = offsets[g + 1] - offsets[g], tiles = (rows + tile - 1) / tile;
      if (down < tiles) {
        p.group = g, p.first = offsets[g], p.i0 = down * tile, p.m = rows, p.k = k;
        return p;
      }
      down -= tiles;
    }
    return p;
  }

  /// to(k, i) from stored rows, one per i along k (`transposed`) or one per k along i. row_at: pointer
  /// to a row, null for zeros; `width`: valid numbers per row.
  template <class RowAt>
  KOKKOS_FUNCTION static void load(const Team& team, const typename Gemm::Tile& to, bool transposed,
                                   int width, const RowAt& row_at) {
    const int across = transposed ? depth : tile, down = transposed ? tile : depth;
    if constexpr (on_host) {
      for (int r = 0; r < down; ++r) {
        const T* from = row_at(r);
        const int count = from ? Kokkos::min(width, across) : 0;
        if (transposed) {
          for (int i = 0; i < count; ++i) to(i, r) = A(from[i]);
          for (int i = count; i < across; ++i) to(i, r) = 0;
        } else {
          A* out = &to(r, 0);
          TERN_SIMD
          for (int i = 0; i < count; ++i) out[i] = A(from[i]);
          for (int i = count; i < across; ++i) out[i] = 0;
        }
      }
    } else {
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile * depth), [&](const int e) {
        const int r = e / across, i = e % across;
        const T* from = row_at(r);
        const A value = from && i < width ? A(from[i]) : A(0);
        if (transposed)
          to(i, r) = value;
        else
          to(r, i) = value;
      });
    }
  }

  KOKKOS_FUNCTION void load_both(const Team& team, const typename Gemm::Tile& ta,
                                 const typename Gemm::Tile& tb, const GroupTile& p, int k0) const {
    const int left = p.k - k0;
    const T* w = b.data + p.group * group_b;
    if (kind == GroupedKind::backward_weight) {
      const auto row = [&](const StoredRows<T>& of, int r, int column) {
        return r < left ? of.at(p.first + k0 + r) + column : nullptr;
      };
      load(team, ta, false, m - p.i0, [&](int r) { return row(a, r, p.i0); });
      load(team, tb, false, n - p.j0, [&](int r) { return row(b, r, p.j0); });
      return;
    }
    load(team, ta, true, left,
         [&](int r) { return p.i0 + r < p.m ? a.at(p.first + p.i0 + r) + k0 : nullptr; });
    if (kind == GroupedKind::forward)
      load(team, tb, true, left, [&](int r) {
        return p.j0 + r < n ? w + static_cast<std::size_t>(p.j0 + r) * k + k0 : nullptr;
      });
    else
      load(team, tb, false, n - p.j0, [&](int r) {
        return r < left ? w + static_cast<std::size_t>(k0 + r) * n + p.j0 : nullptr;
      });
  }

  /// sums += ta^T tb, for at least the first `rows` rows.
  KOKKOS_FUNCTION static void multiply(const Team& team, const typename Gemm::Tile& ta,
                                       const typename Gemm::Tile& tb,
                                       const typename Gemm::Sums& sums, int rows) {
    if constexpr (on_host) {
      // Whole blocks of rows, for batch invariance.
      constexpr int height = 8, across = tile + 1;
      const int whole = Kokkos::min(+tile, (rows + height - 1) / height * height);
      attention::add_product<A>(whole, depth, tile, {&ta(0, 0), 1, across}, {&tb(0, 0), across},
                                {&sums(0, 0), tile});
    } else {
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, Gemm::parts),
                           [&](const int part) { Gemm{}.multiply(part, ta, tb, sums); });
    }
  }

  KOKKOS_FUNCTION void store(const Team& team, const typename Gemm::Sums& sums,
                             const GroupTile& p) const {
    const bool adds = kind == GroupedKind::backward_weight;
    C* to = adds ? c + p.group * group_c : c + static_cast<std::size_t>(p.first) * n;
    const int rows = Kokkos::min(+tile, p.m - p.i0), width = Kokkos::min(+tile, n - p.j0);
    const A keep = adds ? 1 : 0;
    const auto element = [=](const A* sum, C* result, int j) {
      result[j] = C(keep != 0 ? A(result[j]) + sum[j] : sum[j]);
    };
    const std::size_t stride = n, i0 = p.i0, j0 = p.j0;
    const auto row = [=](int i) { return to + (i0 + i) * stride + j0; };
    if constexpr (on_host) {
      for (int i = 0; i < rows; ++i) {
        const A* sum = &sums(i, 0);
        C* result = row(i);
        TERN_SIMD
        for (int j = 0; j < width; ++j) element(sum, result, j);
      }
    } else {
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile * tile), [&](const int e) {
        const int i = e / tile, j = e % tile;
        if (i < rows && j < width) element(&sums(i, 0), row(i), j);
      });
    }
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const typename Gemm::Tile ta(team.team_scratch(0)), tb(team.team_scratch(0));
    const typename Gemm::Sums sums(team.team_scratch(0));
    const GroupTile p = place(team.league_rank());
    if (p.group < 0 || p.k == 0) return;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile * tile),
                         [&](const int e) { sums(e / tile, e % tile) = 0; });
    for (int k0 = 0; k0 < p.k; k0 += depth) {
      team.team_barrier();
      load_both(team, ta, tb, p, k0);
      team.team_barrier();
      multiply(team, ta, tb, sums, p.m - p.i0);
    }
    team.team_barrier();
    store(team, sums, p);
  }
};

/// `rows`: sum over all groups.
template <class T, class C>
void grouped_gemm(const Context& context, const GroupedGemm<T, C>& gemm, std::size_t rows) {
  using G = GroupedGemm<T, C>;
  const auto tiles = [](int extent) { return (extent + G::tile - 1) / G::tile; };
  const int all = static_cast<int>(rows);
  const int down = gemm.kind == GroupedKind::backward_weight
                       ? gemm.groups * tiles(gemm.m)
                       : all / G::tile + Kokkos::min(gemm.groups, all);
  if (all == 0 || down * tiles(gemm.n) == 0) return;
  Kokkos::TeamPolicy<Device> policy(context.space, down * tiles(gemm.n),
                                    on_host ? 1 : G::Gemm::parts);
  policy.set_scratch_size(0, Kokkos::PerTeam(G::Gemm::scratch()));
  Kokkos::parallel_for("tern::grouped_gemm", policy, gemm);
}

}  // namespace tern::ops::portable::detail
