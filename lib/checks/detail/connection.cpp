#include "checks/detail/families.hpp"

#include "ops/elementwise/connection.hpp"

namespace tern::checks {
using namespace ops;
namespace {

// The gradients given to backward are results of forward, whose scalars are near one: their products
// with its terms do not cancel in the sums that are the scalars' gradients.

enum class Terms { shortcut, skip, both };

void check_connect(Checker& checker, Terms terms, std::size_t N, std::size_t D) {
  const bool shortcut = terms != Terms::skip, skips = terms != Terms::shortcut;
  const char* name = shortcut && skips ? "connect"
                     : shortcut        ? "connect, shortcut"
                                       : "connect, skip";
  const auto body = [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    const Matrix<const T> x = r.input(N, D);
    Matrix<const T> input, skip;
    Vector<T> a, b, c;
    Matrix<T> dinput, dskip;
    Vector<A> da, db, dc;
    if (shortcut) {
      input = r.input(N, D), dinput = r.inout(N, D), a = r.factor(), b = r.factor();
      da = r.template inout<A>(1), db = r.template inout<A>(1);
    }
    if (skips)
      skip = r.input(N, D), dskip = r.output(N, D), c = r.factor(), dc = r.template inout<A>(1);
    const Matrix<T> y = r.output(N, D), in_place = r.inout(N, D);
    for (const auto& [from, to] : {std::pair{x, y}, {in_place, in_place}})
      run(r.context, ConnectForward<T>{
                         .x = from, .input = input, .skip = skip, .a = a, .b = b, .c = c, .y = to});
    run(r.context, ConnectBackward<T>{.x = x,
                                      .input = input,
                                      .skip = skip,
                                      .a = a,
                                      .b = b,
                                      .c = c,
                                      .dy = y,
                                      .dinput = dinput,
                                      .dskip = dskip,
                                      .da = da,
                                      .db = db,
                                      .dc = dc,
                                      .partial = r.template workspace<A>(connect_partials())});
  };
  checker.check(name, fmt::format("N {} D {}", N, D), body);
}

/// Columns [first, first + W) of `columns`.
struct Part {
  std::size_t first, W, columns;
};

void check_scaled_rows(Checker& checker, std::size_t N, std::size_t V, const Part& part) {
  const auto [first, W, columns] = part;
  const auto body = [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    const auto tokens = r.integers(r.draw_integers(N, static_cast<std::uint32_t>(V), 0));
    const Matrix<const T> table = r.input(V, W);
    const Vector<const T> scale = r.factor();
    const Matrix<T> fused = r.inout(N, columns);
    run(r.context,
        AddScaledRows<T>{
            .tokens = tokens, .table = table, .scale = scale, .fused = fused, .first = first});
    run(r.context, ScaledRowsBackward<T>{.tokens = tokens,
                                         .table = table,
                                         .scale = scale,
                                         .dfused = fused,
                                         .first = first,
                                         .drows = r.output(N, W),
                                         .dscale = r.template inout<A>(1),
                                         .partial = r.template workspace<A>(connect_partials())});
  };
  checker.check("scaled_rows",
                fmt::format("N {} V {} columns {} to {} of {}", N, V, first, first + W, columns),
                body);
}

}  // namespace

// Widths of whole packs and others; few rows, and more than the resident blocks take at once.
void check_connection(Checker& checker) {
  for (const Terms terms : {Terms::shortcut, Terms::skip, Terms::both}) {
    check_connect(checker, terms, 1, 8);
    check_connect(checker, terms, 61, 1032);
    check_connect(checker, terms, 13, 37);
  }
  check_connect(checker, Terms::both, 3001, 768);
  check_scaled_rows(checker, 1, 3, {0, 8, 8});
  check_scaled_rows(checker, 500, 300, {144, 136, 280});
  check_scaled_rows(checker, 7201, 900, {256, 768, 1032});
  check_scaled_rows(checker, 150, 40, {64, 24, 92});   // a pitch, a first column and a width
  check_scaled_rows(checker, 150, 40, {12, 24, 120});  // that are no multiple of 8
  check_scaled_rows(checker, 150, 40, {16, 21, 64});
}

}  // namespace tern::checks
