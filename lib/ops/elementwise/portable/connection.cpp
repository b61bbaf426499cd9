#include "ops/elementwise/connection.hpp"

#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"

namespace tern::ops {
using namespace portable;
namespace {

using detail::Team;

/// Groups of rows with partial sums of their own: enough to keep a device busy.
constexpr std::size_t most_groups = detail::on_host ? 64 : 8192;
constexpr int most_scalars = 3;

struct Groups {
  std::size_t rows_each, count;

  explicit Groups(std::size_t rows)
      : rows_each((rows + most_groups - 1) / most_groups),
        count(rows == 0 ? 0 : (rows + rows_each - 1) / rows_each) {}
};

template <class X>
bool given(const X& view) {
  return view.extent(0) > 0;
}

template <class T>
const T* scalar(const Vector<const T>& view) {
  return given(view) ? view.data() : nullptr;
}

template <class C, class M>
void require_terms(const C& call, const M& result) {
  const auto fits = [&](const auto& term) {
    return term.extent(0) == result.extent(0) && term.extent(1) == result.extent(1);
  };
  TERN_REQUIRE(
      fits(call.x) && (!given(call.b) || fits(call.input)) && (!given(call.c) || fits(call.skip)),
      "({}, {}) of ({}, {}), ({}, {}) and ({}, {})", result.extent(0), result.extent(1),
      call.x.extent(0), call.x.extent(1), call.input.extent(0), call.input.extent(1),
      call.skip.extent(0), call.skip.extent(1));
}

/// to (1) += sum of one row of the partial sums (scalars, groups).
template <class A>
void add_partials(const Context& context, Matrix<const A> partial, std::size_t row, Vector<A> to) {
  const int groups = static_cast<int>(partial.extent(1));
  detail::for_each_row(
      context, "tern::connect_partials", 1, KOKKOS_LAMBDA(const Team& team, const int) {
        const A* sums = &partial(row, 0);
        const A sum = detail::row_sum<A>(team, groups, [&](int i) { return sums[i]; });
        detail::columns(team, 1, [&](int) { to(0) += sum; });
      });
}

/// Gradients of the terms, and partial sums of those of the scalars, for a group of rows.
template <class T>
struct ConnectRows {
  using A = Accumulate<T>;

  Matrix<const T> x, input, skip;
  const T *of_stream, *of_first, *of_other;  // a, b, c
  Matrix<T> dy, dinput, dskip;
  Matrix<A> partial;  // (scalars, groups)
  int group_rows;

  KOKKOS_FUNCTION void operator()(const Team& team, const int group) const {
    const int width = static_cast<int>(dy.extent(1)), rows = static_cast<int>(dy.extent(0));
    const int begin = group * group_rows, end = Kokkos::min(rows, begin + group_rows);
    A of_x = 0, of_input = 0, of_skip = 0;
    for (int n = begin; n < end; ++n) {
      T* gradient = &dy(n, 0);
      if (of_other) {
        const T* from = &skip(n, 0);
        of_skip +=
            detail::row_sum<A>(team, width, [&](int i) { return A(gradient[i]) * A(from[i]); });
        const A c = A(of_other[0]);
        T* to = &dskip(n, 0);
        detail::columns(team, width, [&](int i) { to[i] = T(c * A(gradient[i])); });
      }
      if (of_first) {
        const T *from = &input(n, 0), *stream = &x(n, 0);
        of_input +=
            detail::row_sum<A>(team, width, [&](int i) { return A(gradient[i]) * A(from[i]); });
        of_x +=
            detail::row_sum<A>(team, width, [&](int i) { return A(gradient[i]) * A(stream[i]); });
        const A a = A(of_stream[0]), b = A(of_first[0]);
        T* to = &dinput(n, 0);
        detail::columns(team, width, [&](int i) {
          const A g = A(gradient[i]);
          to[i] = T(A(to[i]) + b * g);
          gradient[i] = T(a * g);
        });
      }
    }
    detail::columns(team, 1, [&](int) {
      partial(0, group) = of_x;
      partial(1, group) = of_input;
      partial(2, group) = of_skip;
    });
  }
};

template <class T>
struct ScaledRows {
  using A = Accumulate<T>;

  Vector<const std::int32_t> tokens;
  Matrix<const T> table;
  const T* scale;
  Matrix<const T> dfused;
  std::size_t first;
  Matrix<T> drows;
  Matrix<A> partial;  // (scalars, groups)
  int group_rows;

  KOKKOS_FUNCTION void operator()(const Team& team, const int group) const {
    const int width = static_cast<int>(drows.extent(1)), rows = static_cast<int>(drows.extent(0));
    const int begin = group * group_rows, end = Kokkos::min(rows, begin + group_rows);
    const A c = A(scale[0]);
    A sum = 0;
    for (int n = begin; n < end; ++n) {
      const T *gradient = &dfused(n, first), *row = &table(tokens(n), 0);
      T* to = &drows(n, 0);
      sum += detail::row_sum<A>(team, width, [&](int i) { return A(gradient[i]) * A(row[i]); });
      detail::columns(team, width, [&](int i) { to[i] = T(c * A(gradient[i])); });
    }
    detail::columns(team, 1, [&](int) { partial(0, group) = sum; });
  }
};

}  // namespace

std::size_t connect_partials() { return most_scalars * most_groups; }

template <class T>
void ConnectForward<T>::check() const {
  require_terms(*this, y);
}

template <class T>
void ConnectForward<T>::portable(const Context& context, const ConnectForward& call) {
  using A = Accumulate<T>;
  const Matrix<const T> x = call.x, input = call.input, skip = call.skip;
  const Matrix<T> y = call.y;
  const T *of_stream = scalar(call.a), *of_first = scalar(call.b), *of_other = scalar(call.c);
  const int width = static_cast<int>(y.extent(1));
  detail::for_each_row(
      context, "tern::connect_forward", y.extent(0),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        const T* stream = &x(row, 0);
        const T* first = of_first ? &input(row, 0) : stream;
        const T* other = of_other ? &skip(row, 0) : stream;
        const A a = of_stream ? A(of_stream[0]) : A(1), b = of_first ? A(of_first[0]) : A(0),
                c = of_other ? A(of_other[0]) : A(0);
        T* to = &y(row, 0);
        detail::columns(team, width, [&](int i) {
          to[i] = T(a * A(stream[i]) + b * A(first[i]) + c * A(other[i]));
        });
      });
}

template <class T>
void ConnectBackward<T>::check() const {
  require_terms(*this, dy);
  TERN_REQUIRE(partial.extent(0) >= connect_partials(), "{} partial sums", partial.extent(0));
}

template <class T>
void ConnectBackward<T>::portable(const Context& context, const ConnectBackward& call) {
  using A = Accumulate<T>;
  const Groups groups(call.dy.extent(0));
  if (groups.count == 0) return;
  const Matrix<A> partial(call.partial.data(), most_scalars, groups.count);
  detail::for_each_row(context, "tern::connect_backward", groups.count,
                       ConnectRows<T>{call.x, call.input, call.skip, scalar(call.a), scalar(call.b),
                                      scalar(call.c), call.dy, call.dinput, call.dskip, partial,
                                      static_cast<int>(groups.rows_each)});
  if (given(call.b)) {
    add_partials<A>(context, partial, 0, call.da);
    add_partials<A>(context, partial, 1, call.db);
  }
  if (given(call.c)) add_partials<A>(context, partial, 2, call.dc);
}

template <class T>
void AddScaledRows<T>::check() const {
  TERN_REQUIRE(tokens.extent(0) >= fused.extent(0) && first + table.extent(1) <= fused.extent(1) &&
                   scale.extent(0) == 1,
               "{} tokens of a table of {} columns, at {} of ({}, {})", tokens.extent(0),
               table.extent(1), first, fused.extent(0), fused.extent(1));
}

template <class T>
void AddScaledRows<T>::portable(const Context& context, const AddScaledRows& call) {
  using A = Accumulate<T>;
  const int width = static_cast<int>(call.table.extent(1));
  detail::for_each_row(
      context, "tern::add_scaled_rows", call.fused.extent(0),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        const T* from = &call.table(call.tokens(row), 0);
        T* to = &call.fused(row, call.first);
        const A c = A(call.scale(0));
        detail::columns(team, width, [&](int i) { to[i] = T(A(to[i]) + c * A(from[i])); });
      });
}

template <class T>
void ScaledRowsBackward<T>::check() const {
  TERN_REQUIRE(tokens.extent(0) >= drows.extent(0) && dfused.extent(0) == drows.extent(0) &&
                   table.extent(1) == drows.extent(1) &&
                   first + drows.extent(1) <= dfused.extent(1) &&
                   partial.extent(0) >= connect_partials(),
               "({}, {}) at {} of ({}, {}), a table of {} columns", drows.extent(0),
               drows.extent(1), first, dfused.extent(0), dfused.extent(1), table.extent(1));
}

template <class T>
void ScaledRowsBackward<T>::portable(const Context& context, const ScaledRowsBackward& call) {
  using A = Accumulate<T>;
  const Groups groups(call.drows.extent(0));
  if (groups.count == 0) return;
  const Matrix<A> partial(call.partial.data(), most_scalars, groups.count);
  detail::for_each_row(
      context, "tern::scaled_rows_backward", groups.count,
      ScaledRows<T>{call.tokens, call.table, call.scale.data(), call.dfused, call.first, call.drows,
                    partial, static_cast<int>(groups.rows_each)});
  add_partials<A>(context, partial, 0, call.dscale);
}

TERN_INSTANTIATE_PORTABLE(ConnectForward)
TERN_INSTANTIATE_PORTABLE(ConnectBackward)
TERN_INSTANTIATE_PORTABLE(AddScaledRows)
TERN_INSTANTIATE_PORTABLE(ScaledRowsBackward)

}  // namespace tern::ops
