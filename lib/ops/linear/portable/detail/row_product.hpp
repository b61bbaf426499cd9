/// y (N, O) = or += x (N, I) w (O, I)^T on the host, batch-invariant: every element of y takes the
/// same operations on its own row of x and of w: packs along I summed lane by lane, then the lanes,
/// then the remainder of I. A row of y has the same bits for any N and row index, which no BLAS
/// promises.
#pragma once
#include <algorithm>

#include "ops/core/context.hpp"
#include "ops/core/portable/pack.hpp"

namespace tern::ops::portable::detail {

template <class A>
struct RowProduct {
  static constexpr int lanes = attention::pack_lanes<A>;
  /// Register block of a thread: 32 registers exist for packs of 64 bytes, else 16.
  static constexpr int rows = 4, columns = sizeof(attention::Pack<A>) == 64 ? 6 : 3;
  /// Rows and columns of y per work item; their parts of x and w stay in the caches.
  static constexpr int tall = 16, wide = 48;

  const A *x, *w;
  A* y;
  int n, outputs, inner;
  Write write;

  void operator()(const int tile) const {
    const int across = (outputs + wide - 1) / wide;
    const int i0 = tile / across * tall, j0 = tile % across * wide;
    const int i1 = std::min(i0 + tall, n), j1 = std::min(j0 + wide, outputs);
    for (int j = j0; j < j1; j += columns)
      for (int i = i0; i < i1; i += rows) part(i, std::min(rows, i1 - i), j, j1 - j);
  }

  void part(int i, int height, int j, int width) const {
    if (height == rows && width >= columns) return multiply<rows, columns>(i, j);
    for (int a = i; a < i + height; ++a) {
      if (width >= columns)
        multiply<1, columns>(a, j);
      else
        for (int b = j; b < j + width; ++b) multiply<1, 1>(a, b);
    }
  }

  template <int R, int C>
  void multiply(int i, int j) const {
    using namespace attention;
    const auto width = static_cast<std::size_t>(inner);
    const A *left = x + i * width, *right = w + j * width;
    Pack<A> sum[R][C] = {};
    int k = 0;
    for (; k + lanes <= inner; k += lanes) {
      Pack<A> other[C];
      for (int c = 0; c < C; ++c) other[c] = load_pack(right + c * width + k);
      for (int r = 0; r < R; ++r) {
        const Pack<A> own = load_pack(left + r * width + k);
        for (int c = 0; c < C; ++c) sum[r][c] += own * other[c];
      }
    }
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) {
        A total = lanes_sum(sum[r][c]);
        for (int rest = k; rest < inner; ++rest)
          total += left[r * width + rest] * right[c * width + rest];
        A& to = y[static_cast<std::size_t>(i + r) * outputs + j + c];
        to = write == Write::add ? to + total : total;
      }
  }

  static A lanes_sum(const attention::Pack<A>& pack) {
    A lane[lanes];
    attention::store_pack(lane, pack);
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
    return lane[0];
  }
};

template <class A>
void row_product(const Context& context, Matrix<const A> x, Matrix<const A> w, Matrix<A> y,
                 Write write) {
  using Product = RowProduct<A>;
  const int n = static_cast<int>(y.extent(0)), outputs = static_cast<int>(y.extent(1));
  const int tiles =
      (n + Product::tall - 1) / Product::tall * ((outputs + Product::wide - 1) / Product::wide);
  if (tiles == 0) return;
  Kokkos::parallel_for(
      "tern::row_product", Kokkos::RangePolicy<Device>(context.space, 0, tiles),
      Product{x.data(), w.data(), y.data(), n, outputs, static_cast<int>(x.extent(1)), write});
}

}  // namespace tern::ops::portable::detail
