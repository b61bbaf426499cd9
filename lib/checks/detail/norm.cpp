#include "checks/cases/norm.hpp"
#include "checks/detail/families.hpp"

#include "ops/attention/head_norm.hpp"
#include "ops/norm/norm.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_rows(Checker& checker, Norm norm, std::size_t N, std::size_t D, NormCase::With with) {
  using Place = NormCase::Place;
  const char* name = norm == Norm::layernorm ? "layernorm" : "rmsnorm";
  const std::string shape = fmt::format("N {} D {}", N, D);
  const std::array names{"", " added", " in place"}, more{"", " of sums", " with dropout"};
  for (const Place place : {Place::anywhere, Place::residual, Place::input}) {
    const NormCase one{norm, N, D, place, with};
    checker.check(
        name, shape + names[static_cast<std::size_t>(place)] + more[static_cast<std::size_t>(with)],
        [=]<class T>(Run<T>& r) { one.run<T>(r.context, r); });
  }
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
    run(r.context, RotaryTable<A>{.base = 10000, .table = table});
    Positions at{3, {}};
    if (named_positions)
      at.rows = r.integers(r.draw_integers(B * T, static_cast<std::uint32_t>(T + 3), 0));
    const auto heads = [&](const Matrix<S>& of, std::size_t first) {
      return heads_of(of, first * E, B, T, H, E);
    };
    const auto forward = [&](const Heads<S>& x, const Heads<S>& y, Vector<A> kept) {
      run(r.context, HeadNormForward<S>{.x = x,
                                        .gain = gain,
                                        .eps = 1e-5,
                                        .table = table,
                                        .positions = at,
                                        .y = y,
                                        .rstd = kept});
    };
    forward(heads(in_place, H), heads(in_place, H), {});
    forward(heads(fused, H), heads(placed, 0), rstd);
    run(r.context, HeadNormBackward<S>{.dx = heads(gradient, 0),
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
      for (const auto with :
           {NormCase::With::nothing, NormCase::With::sums, NormCase::With::dropout})
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
