/// RMSNorm per head (Zhang & Sennrich 2019; the q/k norm of Qwen3).
#include "base/error.hpp"
#include "ops/norm.hpp"
#include "ops/portable/detail/loops.hpp"

namespace tern::ops {
using namespace portable;
namespace {
using detail::Team;

/// The vector of row (b * T + t) * heads + h.
template <class T>
KOKKOS_INLINE_FUNCTION T* head_vector(const Heads<T>& x, int row) {
  const int heads = static_cast<int>(x.extent(2)), tokens = static_cast<int>(x.extent(1));
  return &x(row / heads / tokens, row / heads % tokens, row % heads, 0);
}

/// dx of a group of rows, and their partial sum of dgain.
template <class T>
struct HeadNormBackward {
  using A = Accumulate<T>;
  Heads<T> dx;
  Matrix<const T> saved;
  Vector<const T> gain;
  Vector<const A> rstd;
  Matrix<A> partial;  // (groups, E)
  int rows, group_rows;

  KOKKOS_FUNCTION void operator()(const Team& team, int group) const {
    const int size = static_cast<int>(dx.extent(3));
    A* dgain = &partial(group, 0);
    detail::columns(team, size, [&](int i) { dgain[i] = 0; });
    const int end = Kokkos::min(rows, (group + 1) * group_rows);
    for (int n = group * group_rows; n < end; ++n) row(team, n, size, dgain);
  }

  /// With xhat = x rstd and g = dy gain: dx = rstd (g - xhat mean(g xhat)).
  KOKKOS_FUNCTION void row(const Team& team, int n, int size, A* dgain) const {
    T* gradient = head_vector(dx, n);
    const T* in = saved.data() + static_cast<std::size_t>(n) * size;
    const T* scale = gain.data();
    const A r = rstd(n);
    const A mean = r / size * detail::row_sum<A>(team, size, [&](int i) {
                     return A(gradient[i]) * A(scale[i]) * A(in[i]);
                   });
    detail::columns(team, size, [&](int i) {
      const A xhat = A(in[i]) * r, dy = A(gradient[i]);
      dgain[i] += dy * xhat;
      gradient[i] = T(r * (dy * A(scale[i]) - xhat * mean));
    });
  }
};

template <class T>
void require_shapes(const Heads<T>& x, std::size_t gain, std::size_t saved_rows,
                    std::size_t saved_columns, std::size_t rstd) {
  TERN_REQUIRE(gain == x.extent(3) && saved_rows == x.extent(0) * x.extent(1) &&
                   saved_columns == x.extent(2) * x.extent(3) && rstd >= saved_rows * x.extent(2),
               "gain {}, saved {} x {}, rstd {}", gain, saved_rows, saved_columns, rstd);
}

}  // namespace

template <class T>
void head_norm_forward(const Context& context, Heads<T> x, Vector<const T> gain, double eps,
                       Matrix<T> saved, Vector<Accumulate<T>> rstd) {
  using A = Accumulate<T>;
  const bool kept = saved.size() > 0;
  if (kept) require_shapes(x, gain.extent(0), saved.extent(0), saved.extent(1), rstd.extent(0));
  if (native<&head_norm_forward<T>>(context, x, gain, eps, saved, rstd)) return;
  const int size = static_cast<int>(x.extent(3));
  const A epsilon = static_cast<A>(eps);
  detail::for_each_row(
      context, "tern::head_norm_forward", x.extent(0) * x.extent(1) * x.extent(2),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        T* value = head_vector(x, row);
        const T* scale = gain.data();
        const A squares =
            detail::row_sum<A>(team, size, [&](int i) { return A(value[i]) * A(value[i]); });
        const A r = A(1) / Kokkos::sqrt(squares / size + epsilon);
        if (kept) {
          T* copy = saved.data() + static_cast<std::size_t>(row) * size;
          detail::columns(team, size, [&](int i) { copy[i] = value[i]; });
          rstd(row) = r;
        }
        detail::columns(team, size, [&](int i) { value[i] = T(A(value[i]) * r * A(scale[i])); });
      });
}

template <class T>
void head_norm_backward(const Context& context, Heads<T> dx, Matrix<const T> saved,
                        Vector<const T> gain, Vector<const Accumulate<T>> rstd,
                        Vector<Accumulate<T>> dgain, Vector<Accumulate<T>> partial) {
  using A = Accumulate<T>;
  require_shapes(dx, gain.extent(0), saved.extent(0), saved.extent(1), rstd.extent(0));
  const std::size_t size = dx.extent(3), rows = dx.extent(0) * dx.extent(1) * dx.extent(2);
  TERN_REQUIRE(partial.extent(0) >= norm_partials(size), "partial has {} numbers",
               partial.extent(0));
  if (native<&head_norm_backward<T>>(context, dx, saved, gain, rstd, dgain, partial)) return;
  if (rows == 0) return;
  const std::size_t most = norm_partials(size) / size;
  const std::size_t group_rows = (rows + most - 1) / most;
  const std::size_t groups = (rows + group_rows - 1) / group_rows;
  const Matrix<A> sums(partial.data(), groups, size);
  detail::for_each_row(context, "tern::head_norm_backward", groups,
                       HeadNormBackward<T>{dx, saved, gain, rstd, sums, static_cast<int>(rows),
                                           static_cast<int>(group_rows)});
  detail::for_each(
      context, "tern::head_norm_dgain", size, KOKKOS_LAMBDA(const std::size_t i) {
        A sum = 0;
        for (std::size_t g = 0; g < groups; ++g) sum += sums(g, i);
        dgain(i) += sum;
      });
}

#define INSTANTIATE(T)                                          \
  template decltype(head_norm_forward<T>) head_norm_forward<T>; \
  template decltype(head_norm_backward<T>) head_norm_backward<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
