#include "checks/detail/families.hpp"

#include "ops/norm.hpp"

namespace tern::checks {
using namespace ops;
namespace {

/// Where norm_backward writes dx: anywhere; onto the residual's gradient; instead of x.
enum class Place { anywhere, residual, input };

/// `parts`: x and dy are sums.
void check_rows(Checker& checker, Norm norm, std::size_t N, std::size_t D, bool parts) {
  const bool layer = norm == Norm::layernorm;
  const char* name = layer ? "layernorm" : "rmsnorm";
  const std::string shape = fmt::format("N {} D {}", N, D);
  const std::array names{"", " added", " in place"};
  for (const Place place : {Place::anywhere, Place::residual, Place::input})
    checker.check(
        name, shape + names[static_cast<std::size_t>(place)] + (parts ? " of parts" : ""),
        [=]<class T>(Run<T>& r) {
          using A = Accumulate<T>;
          auto dy = r.input(N, D);
          const Matrix<T> dx = place == Place::anywhere ? r.output(N, D) : r.inout(N, D, 2);
          Matrix<const T> x, dy_added, residual;
          PendingSum<T> made;
          if (parts) {
            made = {r.input(N, D), r.input(N, D), r.input(N, D), r.output(N, D)};
            x = made.to, dy_added = r.input(N, D);
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
                                       .dy_added = dy_added});
        });
}

void check_head_norm(Checker& checker, std::size_t B, std::size_t T, std::size_t H, std::size_t E) {
  const std::string shape = fmt::format("B {} T {} H {} E {}", B, T, H, E);
  checker.check("head_norm", shape, [=]<class S>(Run<S>& r) {
    using A = Accumulate<S>;
    auto fused = r.inout(B * T, 3 * H * E), gradient = r.inout(B * T, 3 * H * E);
    auto gain = r.input(E);
    auto saved = r.output(B * T, H * E);
    auto rstd = r.template output<A>(B * T * H);
    head_norm_forward<S>(r.context, heads_of<S>(fused, H * E, B, T, H, E), gain, 1e-5, saved, rstd);
    head_norm_backward<S>(r.context, heads_of<S>(gradient, 0, B, T, H, E), saved, gain, rstd,
                          r.template inout<A>(E), r.template workspace<A>(norm_partials(E)));
  });
}

}  // namespace

void check_norm(Checker& checker) {
  for (const Norm norm : {Norm::rmsnorm, Norm::layernorm})
    for (const std::size_t D : {24, 33, 256, 1000, 1024, 2560, 5120})
      for (const bool parts : {false, true})
        check_rows(checker, norm, D == 1024 ? 2501 : 67, D, parts);
  check_head_norm(checker, 3, 17, 5, 64);
  check_head_norm(checker, 2, 133, 3, 128);
  check_head_norm(checker, 1, 9, 2, 24);
}

}  // namespace tern::checks
