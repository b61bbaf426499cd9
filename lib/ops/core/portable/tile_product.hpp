/// Products of small tiles, the inner loops of attention. Packs lie along a tile's `own` axis
/// (queries, or keys), contiguous and Own wide; the other operand is read element by element and
/// broadcast. So only a team's own tile is ever transposed.
#pragma once
#include "memory/views.hpp"
#include "ops/core/portable/pack.hpp"

namespace tern::ops::portable::attention {

using Team = Kokkos::TeamPolicy<Device>::member_type;

/// Broadcast operand a(m, k) with any strides.
template <class A>
struct Operand {
  const A* data;
  std::ptrdiff_t row, column;
};

/// Whether the product is added to what c holds.
enum class Sum { fresh, onto };

/// Rows x Packs packs of c += or = a b, kept in registers over the whole inner axis; b's rows are
/// `b_stride` apart, c's `stride`.
template <int Rows, int Packs, class A>
KOKKOS_INLINE_FUNCTION void micro_product(int inner, Operand<A> a, const A* b,
                                          std::ptrdiff_t b_stride, A* c, std::ptrdiff_t stride,
                                          Sum sum) {
  constexpr int lanes = pack_lanes<A>;
  Pack<A> total[Rows][Packs];
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Packs; ++j)
      total[i][j] = sum == Sum::onto ? load_pack(c + i * stride + j * lanes) : Pack<A>{};
  const A* column = a.data;
  for (int k = 0; k < inner; ++k, column += a.column, b += b_stride) {
    Pack<A> right[Packs];
    for (int j = 0; j < Packs; ++j) right[j] = load_pack(b + j * lanes);
    for (int i = 0; i < Rows; ++i) {
      const A left = column[i * a.row];
      for (int j = 0; j < Packs; ++j) total[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Packs; ++j) store_pack(c + i * stride + j * lanes, total[i][j]);
}

/// c (rows, Own) = or += a (rows, inner) b (inner, Own), divided over the team; b and c have
/// `stride`. Ends with a barrier.
template <int Own, class A>
KOKKOS_INLINE_FUNCTION void tile_product(const Team& team, int rows, int inner, Operand<A> a,
                                         const A* b, A* c, int stride, Sum sum) {
  constexpr int lanes = pack_lanes<A>;
  constexpr int packs = Own >= 2 * lanes ? 2 : 1;
  constexpr int height = lanes > 1 ? 8 : 4;
  constexpr int across = Own / (packs * lanes);
  const int down = (rows + height - 1) / height;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, down * across), [&](int block) {
    const int m = block / across * height, n = block % across * packs * lanes;
    const Operand<A> left{a.data + m * a.row, a.row, a.column};
    if (m + height <= rows) {
      micro_product<height, packs>(inner, left, b + n, stride, c + m * stride + n, stride, sum);
    } else {
      for (int i = 0; m + i < rows; ++i)
        micro_product<1, packs>(inner, Operand<A>{left.data + i * a.row, a.row, a.column}, b + n,
                                stride, c + (m + i) * stride + n, stride, sum);
    }
  });
  team.team_barrier();
}

/// Row-major matrix with a row stride.
template <class A>
struct Block {
  A* data;
  std::ptrdiff_t stride;
};

/// c (rows, columns) += a (rows, inner) b (inner, columns) by one thread; columns is a multiple of
/// pack_lanes.
template <class A>
KOKKOS_INLINE_FUNCTION void add_product(int rows, int inner, int columns, Operand<A> a,
                                        Block<const A> b, Block<A> c) {
  constexpr int lanes = pack_lanes<A>, height = 8;
  for (int m = 0; m < rows; m += height)
    for (int n = 0; n < columns;) {
      const Operand<A> left{a.data + m * a.row, a.row, a.column};
      A* to = c.data + m * c.stride + n;
      if (m + height <= rows && n + 2 * lanes <= columns) {
        micro_product<height, 2>(inner, left, b.data + n, b.stride, to, c.stride, Sum::onto);
        n += 2 * lanes;
        continue;
      }
      for (int i = 0; i < height && m + i < rows; ++i)
        micro_product<1, 1>(inner, Operand<A>{left.data + i * a.row, a.row, a.column}, b.data + n,
                            b.stride, to + i * c.stride, c.stride, Sum::onto);
      n += lanes;
    }
}

}  // namespace tern::ops::portable::attention
