#include "checks/detail/families.hpp"

#include "ops/attention/head_norm.hpp"
#include "ops/norm/norm.hpp"

namespace tern::checks {
using namespace ops;
namespace {

/// Where norm_backward writes dx: anywhere; onto the residual's gradient; instead of x.
enum class Place { anywhere, residual, input };

/// What the norms also take: nothing; sums as x and dy; a sum with dropout as x, of which
/// backward then drops dx.
enum class With { nothing, parts, dropout };

void check_rows(Checker& checker, Norm norm, std::size_t N, std::size_t D, With with) {
  const DropoutKey key{0.3, 11, 5, 2, 100};
  const bool layer = norm == Norm::layernorm;
  const char* name = layer ? "layernorm" : "rmsnorm";
  const std::string shape = fmt::format("N {} D {}", N, D);
  const std::array names{"", " added", " in place"}, more{"", " of parts", " with dropout"};
  for (const Place place : {Place::anywhere, Place::residual, Place::input})
    checker.check(
        name, shape + names[static_cast<std::size_t>(place)] + more[static_cast<std::size_t>(with)],
        [=]<class T>(Run<T>& r) {
          using A = Accumulate<T>;
          auto dy = r.input(N, D);
          const Matrix<T> dx = place == Place::anywhere ? r.output(N, D) : r.inout(N, D, 2);
          Matrix<const T> x, dy_added, residual;
          PendingSum<T> made;
          Matrix<T> dropped;
          if (with == With::parts) {
            made = {r.input(N, D), r.input(N, D), r.input(N, D), r.output(N, D)};
            x = made.to, dy_added = r.input(N, D);
          } else if (with == With::dropout) {
            const Matrix<T> sum = place == Place::anywhere ? r.output(N, D) : r.inout(N, D);
            made = {place == Place::anywhere ? r.input(N, D) : sum, r.input(N, D), {}, sum, key};
            x = sum, dropped = r.output(N, D);
          } else {
            x = place == Place::input ? Matrix<const T>(dx) : r.input(N, D, 2);
          }
          if (place == Place::residual) residual = dx;
          if (place == Place::input) residual = r.input(N, D);
          auto gain = r.input(D);
          Vector<T> bias;
          Vector<A> mean, dbias;
          if (layer)
            bias = r.input(D), mean = r.template output<A>(N), dbias = r.template inout<A>(D);
          auto rstd = r.template output<A>(N);
          auto y = r.output(N, D);
          auto dgain = r.template inout<A>(D);
          norm_forward<T>(r.context, {.kind = norm,
                                      .x = x,
                                      .gain = gain,
                                      .bias = bias,
                                      .eps = 1e-5,
                                      .y = y,
                                      .mean = mean,
                                      .rstd = rstd,
                                      .made = made});
          norm_backward<T>(r.context, {.kind = norm,
                                       .dy = dy,
                                       .x = x,
                                       .gain = gain,
                                       .mean = mean,
                                       .rstd = rstd,
                                       .dx = dx,
                                       .residual = residual,
                                       .dgain = dgain,
                                       .dbias = dbias,
                                       .partial = r.template workspace<A>(norm_partials(D)),
                                       .dy_added = dy_added,
                                       .dropped = dropped,
                                       .dropout = key});
        });
}

/// Into another matrix and, as without a backward, in place.
void check_head_norm(Checker& checker, std::size_t B, std::size_t T, std::size_t H, std::size_t E,
                     bool rotated, bool named_positions) {
  const std::string shape = fmt::format("B {} T {} H {} E {}{}{}", B, T, H, E,
                                        rotated ? ", rotated" : "", named_positions ? " at" : "");
  checker.check("head_norm", shape, [=]<class S>(Run<S>& r) {
    using A = Accumulate<S>;
    auto fused = r.input(B * T, 3 * H * E), in_place = r.inout(B * T, 3 * H * E);
    auto placed = r.output(B * T, H * E), gradient = r.inout(B * T, 3 * H * E);
    auto gain = r.input(E);
    auto rstd = r.template output<A>(B * T * H);
    const Matrix<A> table = r.template output<A>(rotated ? T + 3 : 0, E);
    rotary_table<A>(r.context, 10000, table);
    Positions at{3, {}};
    if (named_positions)
      at.rows = r.integers(r.draw_integers(B * T, static_cast<std::uint32_t>(T + 3), 0));
    const auto heads = [&](const Matrix<S>& of, std::size_t first) {
      return heads_of(of, first * E, B, T, H, E);
    };
    const auto forward = [&](const Heads<S>& x, const Heads<S>& y, Vector<A> kept) {
      head_norm_forward<S>(r.context, {.x = x,
                                       .gain = gain,
                                       .eps = 1e-5,
                                       .table = table,
                                       .positions = at,
                                       .y = y,
                                       .rstd = kept});
    };
    forward(heads(in_place, H), heads(in_place, H), {});
    forward(heads(fused, H), heads(placed, 0), rstd);
    head_norm_backward<S>(r.context, {.dx = heads(gradient, 0),
                                      .x = heads(fused, H),
                                      .gain = gain,
                                      .rstd = rstd,
                                      .table = table,
                                      .positions = at,
                                      .dgain = r.template inout<A>(E),
                                      .partial = r.template workspace<A>(norm_partials(E))});
  });
}

}  // namespace

void check_norm(Checker& checker) {
  for (const Norm norm : {Norm::rmsnorm, Norm::layernorm})
    for (const std::size_t D : {24, 33, 256, 1000, 1024, 2560, 5120})
      for (const With with : {With::nothing, With::parts, With::dropout})
        check_rows(checker, norm, D == 1024 ? 2501 : 67, D, with);
  for (const bool rotated : {false, true}) {
    check_head_norm(checker, 3, 17, 5, 64, rotated, false);
    check_head_norm(checker, 2, 133, 3, 128, rotated, rotated);
    check_head_norm(checker, 1, 9, 2, 24, rotated, rotated);
  }
  check_head_norm(checker, 2, 7, 3, 32, true, false);
  check_head_norm(checker, 1, 5, 1, 256, true, false);
}

}  // namespace tern::checks
