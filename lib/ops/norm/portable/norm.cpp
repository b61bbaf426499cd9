#include "ops/norm/norm.hpp"
#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"

namespace tern::ops {
using namespace portable;
namespace {

using detail::Team;

/// Rows of the partial sums of dgain and dbias: enough to keep a device busy, few enough to stay
/// small.
constexpr std::size_t partial_rows = detail::on_host ? 64 : 1024;

/// Checks the shapes of x, `other`, gain and rstd.
template <class X, class Y, class G, class A>
void require_rows(const X& x, const Y& other, const G& gain, const A& rstd) {
  TERN_REQUIRE(other.extent(0) == x.extent(0) && other.extent(1) == x.extent(1) &&
                   gain.extent(0) == x.extent(1) && rstd.extent(0) >= x.extent(0),
               "({}, {}) and ({}, {}), gain {}, rstd {}", x.extent(0), x.extent(1), other.extent(0),
               other.extent(1), gain.extent(0), rstd.extent(0));
}

}  // namespace

std::size_t norm_partials(std::size_t width) { return partial_rows * 2 * width; }

template <class T>
void NormForward<T>::check() const {
  require_rows(x, y, gain, rstd);
}

template <class T>
void NormForward<T>::portable(const Context& context, const NormForward& call) {
  const Matrix<const T> x = call.x;
  const Vector<const T> gain = call.gain;
  const Matrix<T> y = call.y;
  const Vector<Accumulate<T>> mean = call.mean, rstd = call.rstd;
  if (call.made.wanted()) make_sum<T>(context, call.made);
  using A = Accumulate<T>;
  const int width = static_cast<int>(x.extent(1));
  const bool centered = call.kind == Norm::layernorm;
  const A epsilon = static_cast<A>(call.eps);
  const T* offset = call.bias.extent(0) > 0 ? call.bias.data() : nullptr;
  detail::for_each_row(
      context, "tern::norm_forward", x.extent(0), KOKKOS_LAMBDA(const Team& team, const int row) {
        const T* in = &x(row, 0);
        const T* scale = gain.data();
        T* out = &y(row, 0);
        A mu = 0;
        if (centered) mu = detail::row_sum<A>(team, width, [&](int i) { return A(in[i]); }) / width;
        const A squares = detail::row_sum<A>(team, width, [&](int i) {
          const A d = A(in[i]) - mu;
          return d * d;
        });
        const A r = A(1) / Kokkos::sqrt(squares / width + epsilon);
        if (offset) {
          detail::columns(team, width, [&](int i) {
            out[i] = T((A(in[i]) - mu) * r * A(scale[i]) + A(offset[i]));
          });
        } else {
          detail::columns(team, width,
                          [&](int i) { out[i] = T((A(in[i]) - mu) * r * A(scale[i])); });
        }
        rstd(row) = r;
        if (centered) mean(row) = mu;
      });
  if (call.rounded.wanted())
    run(context, Fp8Round<T>{.values = y, .to = call.rounded, .scaling = context.scaling});
  if (call.coded.wanted()) run(context, Fp8RoundRows<T>{.x = y, .to = call.coded});
}

namespace {

/// dx of the rows, and partial sums of dgain and dbias per group of rows.
template <class T>
struct NormBackwardRows {
  using A = Accumulate<T>;

  Matrix<const T> dy, dy_added, x, residual;
  Vector<const T> gain;
  Vector<const A> mean, rstd;
  Matrix<T> dx;
  Matrix<A> partial;  // (groups, 2 D): dgain | dbias
  int group_rows;
  bool centered;

  KOKKOS_FUNCTION void row(const Team& team, const int n, A* dgain, A* dbias) const {
    const int width = static_cast<int>(x.extent(1));
    const T *in = &x(n, 0), *scale = gain.data(), *own = &dy(n, 0);
    const T* more = dy_added.extent(0) > 0 ? &dy_added(n, 0) : nullptr;
    const T* rest = residual.extent(0) > 0 ? &residual(n, 0) : nullptr;
    const auto dout = [=](int i) { return more ? A(T(A(own[i]) + A(more[i]))) : A(own[i]); };
    T* out = &dx(n, 0);
    const A r = rstd(n), mu = centered ? mean(n) : A(0);
    // Means over the row of g and of g xhat, where g = dy gain and xhat = (x - mu) r.
    const A g_xhat = r / width * detail::row_sum<A>(team, width, [&](int i) {
                       return dout(i) * A(scale[i]) * (A(in[i]) - mu);
                     });
    A g = 0;
    if (centered)
      g = detail::row_sum<A>(team, width, [&](int i) { return dout(i) * A(scale[i]); }) / width;
    if (centered) {
      detail::columns(team, width, [&](int i) { dbias[i] += dout(i); });
    }
    detail::columns(team, width, [&](int i) {
      const A xhat = (A(in[i]) - mu) * r;
      const A gradient = r * (dout(i) * A(scale[i]) - g - xhat * g_xhat);
      dgain[i] += dout(i) * xhat;
      out[i] = T(gradient + (rest ? A(rest[i]) : A(0)));
    });
  }

  KOKKOS_FUNCTION void operator()(const Team& team, const int group) const {
    const int width = static_cast<int>(x.extent(1)), rows = static_cast<int>(x.extent(0));
    A* dgain = &partial(group, 0);
    A* dbias = dgain + width;
    detail::columns(team, 2 * width, [&](int i) { dgain[i] = 0; });
    const int begin = group * group_rows, end = Kokkos::min(rows, begin + group_rows);
    for (int n = begin; n < end; ++n) row(team, n, dgain, dbias);
  }
};

/// to (D) += column sums of one half of the partial sums.
template <class A>
void add_partials(const Context& context, Matrix<const A> partial, std::size_t first,
                  Vector<A> to) {
  if (to.extent(0) == 0) return;
  const std::size_t groups = partial.extent(0);
  detail::for_each(
      context, "tern::norm_partials", to.extent(0), KOKKOS_LAMBDA(const std::size_t i) {
        A sum = 0;
        for (std::size_t g = 0; g < groups; ++g) sum += partial(g, first + i);
        to(i) += sum;
      });
}

}  // namespace

template <class T>
void NormBackward<T>::check() const {
  require_rows(x, dx, gain, rstd);
  if (residual.size() > 0) require_rows(x, residual, gain, rstd);
  if (dropped.size() > 0) require_rows(x, dropped, gain, rstd);
  TERN_REQUIRE(dy.size() == x.size() && partial.extent(0) >= norm_partials(x.extent(1)),
               "{} gradients of {}, {} partial sums", dy.size(), x.size(), partial.extent(0));
}

template <class T>
void NormBackward<T>::portable(const Context& context, const NormBackward& call) {
  using A = Accumulate<T>;
  const std::size_t rows = call.x.extent(0), width = call.x.extent(1);
  if (rows == 0) return;
  const std::size_t group_rows = (rows + partial_rows - 1) / partial_rows;
  const std::size_t groups = (rows + group_rows - 1) / group_rows;
  const Matrix<A> sums(call.partial.data(), groups, 2 * width);
  detail::for_each_row(
      context, "tern::norm_backward", groups,
      NormBackwardRows<T>{call.dy, call.dy_added, call.x, call.residual, call.gain, call.mean,
                          call.rstd, call.dx, sums, static_cast<int>(group_rows),
                          call.kind == Norm::layernorm});
  add_partials<A>(context, sums, 0, call.dgain);
  add_partials<A>(context, sums, width, call.dbias);
  const bool drops = call.dropped.size() > 0;
  if (drops) run(context, Dropout<T>{.key = call.dropout, .x = call.dx, .y = call.dropped});
  if (call.magnitude.size() > 0)
    run(context,
        LargestMagnitude<T>{.x = drops ? call.dropped : call.dx, .magnitude = call.magnitude});
}

TERN_INSTANTIATE_PORTABLE(NormForward)
TERN_INSTANTIATE_PORTABLE(NormBackward)

}  // namespace tern::ops
