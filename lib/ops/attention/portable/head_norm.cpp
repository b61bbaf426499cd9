#include "ops/attention/head_norm.hpp"

#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"
#include "ops/norm/norm.hpp"

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
struct HeadNormBackwardRows {
  using A = Accumulate<T>;
  Heads<T> dx;
  Heads<const T> x;
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
    const T* in = head_vector(x, n);
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

template <class X, class Y>
void require_shapes(const X& x, const Y& other, std::size_t gain) {
  bool alike = gain == x.extent(3);
  for (int i = 0; i < 4; ++i) alike = alike && x.extent(i) == other.extent(i);
  TERN_REQUIRE(alike, "({}, {}, {}, {}) and ({}, {}, {}, {}), gain {}", x.extent(0), x.extent(1),
               x.extent(2), x.extent(3), other.extent(0), other.extent(1), other.extent(2),
               other.extent(3), gain);
}

}  // namespace

template <class T>
void HeadNormForward<T>::check() const {
  require_shapes(x, y, gain.extent(0));
  const std::size_t rows = x.extent(0) * x.extent(1) * x.extent(2);
  const bool kept = rstd.extent(0) > 0;
  TERN_REQUIRE(!kept || rstd.extent(0) >= rows, "rstd of {} for {}", rstd.extent(0), rows);
}

template <class T>
void HeadNormForward<T>::portable(const Context& context, const HeadNormForward& call) {
  using A = Accumulate<T>;
  const Heads<const T> x = call.x;
  const Heads<T> y = call.y;
  const Vector<const T> gain = call.gain;
  const Vector<A> rstd = call.rstd;
  const std::size_t rows = x.extent(0) * x.extent(1) * x.extent(2);
  const bool kept = rstd.extent(0) > 0;
  const int size = static_cast<int>(x.extent(3));
  const A epsilon = static_cast<A>(call.eps);
  detail::for_each_row(
      context, "tern::head_norm_forward", rows, KOKKOS_LAMBDA(const Team& team, const int row) {
        const T *in = head_vector(x, row), *scale = gain.data();
        T* out = head_vector(y, row);
        const A squares =
            detail::row_sum<A>(team, size, [&](int i) { return A(in[i]) * A(in[i]); });
        const A r = A(1) / Kokkos::sqrt(squares / size + epsilon);
        if (kept) rstd(row) = r;
        detail::columns(team, size, [&](int i) { out[i] = T(A(in[i]) * r * A(scale[i])); });
      });
  if (call.table.size() > 0)
    run(context, Rotary<T>{.x = y,
                           .table = call.table,
                           .positions = call.positions,
                           .direction = Direction::forward});
}

template <class T>
void HeadNormBackward<T>::check() const {
  require_shapes(x, dx, gain.extent(0));
  const std::size_t size = x.extent(3);
  const std::size_t rows = x.extent(0) * x.extent(1) * x.extent(2);
  TERN_REQUIRE(rstd.extent(0) >= rows && partial.extent(0) >= norm_partials(size),
               "rstd of {} for {}, {} partial sums", rstd.extent(0), rows, partial.extent(0));
}

template <class T>
void HeadNormBackward<T>::portable(const Context& context, const HeadNormBackward& call) {
  using A = Accumulate<T>;
  const Vector<A> dgain = call.dgain, partial = call.partial;
  const std::size_t size = call.x.extent(3);
  const std::size_t rows = call.x.extent(0) * call.x.extent(1) * call.x.extent(2);
  if (rows == 0) return;
  if (call.table.size() > 0)
    run(context, Rotary<T>{.x = call.dx,
                           .table = call.table,
                           .positions = call.positions,
                           .direction = Direction::backward});
  const std::size_t most = norm_partials(size) / size;
  const std::size_t group_rows = (rows + most - 1) / most;
  const std::size_t groups = (rows + group_rows - 1) / group_rows;
  const Matrix<A> sums(partial.data(), groups, size);
  detail::for_each_row(
      context, "tern::head_norm_backward", groups,
      HeadNormBackwardRows<T>{call.dx, call.x, call.gain, call.rstd, sums, static_cast<int>(rows),
                              static_cast<int>(group_rows)});
  detail::for_each(
      context, "tern::head_norm_dgain", size, KOKKOS_LAMBDA(const std::size_t i) {
        A sum = 0;
        for (std::size_t g = 0; g < groups; ++g) sum += sums(g, i);
        dgain(i) += sum;
      });
}

TERN_INSTANTIATE_PORTABLE(HeadNormForward)
TERN_INSTANTIATE_PORTABLE(HeadNormBackward)

}  // namespace tern::ops
