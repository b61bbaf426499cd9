#include "checks/detail/families.hpp"

#include <cmath>

#include "ops/ops.hpp"

namespace tern::checks {
using namespace ops;
namespace {

/// MoE layer: N tokens, k of X experts each, D inputs, F hidden.
struct ExpertShape {
  std::size_t N, k, X, D, F;
  std::size_t rows() const { return N * k; }
  std::string text() const { return fmt::format("N {} k {} of {} D {} F {}", N, k, X, D, F); }
};

/// Routing of random experts, a third of the pairs to the first two, with sort_pairs's results over
/// old contents.
template <class T>
Routing draw_routing(Run<T>& r, const ExpertShape& s) {
  using Index = std::int32_t;
  const auto drawn = r.integers(r.draw_integers(s.rows(), static_cast<std::uint32_t>(s.X), 0));
  const Vector<Index> experts = r.template workspace<Index>(s.rows());
  Kokkos::deep_copy(r.context.space, experts, drawn);
  Routing routing;
  routing.experts = as_matrix(experts.data(), s.N, s.k);
  routing.offsets = r.template inout<Index>(s.X + 1);
  routing.pairs = r.template inout<Index>(s.rows());
  routing.tokens = r.template inout<Index>(s.rows());
  routing.rows = r.template inout<Index>(s.N, s.k);
  run(r.context, SortPairs{.routing = routing});
  return routing;
}

void check_routing(Checker& checker, std::size_t N, std::size_t k, std::size_t X) {
  const std::string shape = fmt::format("N {} k {} of {}", N, k, X);
  for (const bool renormalize : {false, true})
    checker.check(renormalize ? "route, renormalized" : "route", shape, [=]<class T>(Run<T>& r) {
      using A = Accumulate<T>;
      auto logits = r.input(N, X, 2);
      auto probabilities = r.template output<A>(N, X), weights = r.template output<A>(N, k);
      run(r.context, Route<T>{.renormalize = renormalize,
                              .logits = logits,
                              .probabilities = probabilities,
                              .weights = weights,
                              .experts = r.template inout<std::int32_t>(N, k)});
    });
}

/// X matrices with a gap between them.
template <class S, class T>
Grouped<S> draw_matrices(Run<T>& r, std::size_t X, std::size_t rows, std::size_t columns,
                         double scale) {
  const std::size_t stride = rows * columns + 16;
  return {r.template input<S>(X, stride, scale).data(), X, rows, columns, stride};
}

void check_grouped(Checker& checker, const ExpertShape& s) {
  const double of_hidden = 1 / std::sqrt(static_cast<double>(s.F)),
               of_input = 1 / std::sqrt(static_cast<double>(s.D));
  checker.check("grouped_forward", s.text(), [=]<class T>(Run<T>& r) {
    const Routing to = draw_routing(r, s);
    const auto up = draw_matrices<T>(r, s.X, 2 * s.F, s.D, of_input);
    const auto down = draw_matrices<T>(r, s.X, s.D, s.F, of_hidden);
    const Matrix<T> x = r.input(s.N, s.D), hidden = r.input(s.rows(), s.F);
    run(r.context, GroupedForward<T>{.offsets = to.offsets,
                                     .x = {x, to.tokens},
                                     .w = {up.data, up.count, up.rows, up.columns, up.stride},
                                     .y = r.output(s.rows(), 2 * s.F)});
    run(r.context,
        GroupedForward<T>{.offsets = to.offsets,
                          .x = {hidden},
                          .w = {down.data, down.count, down.rows, down.columns, down.stride},
                          .y = r.output(s.rows(), s.D)});
  });
  checker.check("grouped_backward_input", s.text(), [=]<class T>(Run<T>& r) {
    const Routing to = draw_routing(r, s);
    const auto up = draw_matrices<T>(r, s.X, 2 * s.F, s.D, of_hidden);
    const auto down = draw_matrices<T>(r, s.X, s.D, s.F, of_input);
    const Matrix<T> dy = r.input(s.N, s.D), dup = r.input(s.rows(), 2 * s.F);
    run(r.context,
        GroupedBackwardInput<T>{.offsets = to.offsets,
                                .dy = {dy, to.tokens},
                                .w = {down.data, down.count, down.rows, down.columns, down.stride},
                                .dx = r.output(s.rows(), s.F)});
    run(r.context, GroupedBackwardInput<T>{.offsets = to.offsets,
                                           .dy = {dup},
                                           .w = {up.data, up.count, up.rows, up.columns, up.stride},
                                           .dx = r.output(s.rows(), s.D)});
  });
  for (const bool up : {false, true})
    checker.check(
        "grouped_backward_weight", s.text() + (up ? ", up" : ", down"), [=]<class T>(Run<T>& r) {
          using A = Accumulate<T>;
          const Routing to = draw_routing(r, s);
          const Matrix<T> x = r.input(s.N, s.D), hidden = r.input(s.rows(), up ? 2 * s.F : s.F);
          const std::size_t stride = hidden.extent(1) * s.D + 16;
          A* dw = r.template inout<A>(s.X, stride).data();
          const Gathered<T> of_tokens{x, to.tokens}, of_rows{hidden};
          if (up)
            run(r.context, GroupedBackwardWeight<T>{.offsets = to.offsets,
                                                    .dy = of_rows,
                                                    .x = of_tokens,
                                                    .dw = {dw, s.X, 2 * s.F, s.D, stride}});
          else
            run(r.context, GroupedBackwardWeight<T>{.offsets = to.offsets,
                                                    .dy = of_tokens,
                                                    .x = of_rows,
                                                    .dw = {dw, s.X, s.D, s.F, stride}});
        });
}

void check_between_products(Checker& checker, const ExpertShape& s) {
  checker.check("weighted_swiglu", s.text(), [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    const Routing to = draw_routing(r, s);
    const Matrix<T> x = r.input(s.rows(), 2 * s.F, 2), dy = r.input(s.rows(), s.F);
    const Matrix<A> weights = r.template input<A>(s.N, s.k);
    run(r.context,
        WeightedSwiglu<T>{
            .x = x, .weights = weights, .pairs = to.pairs, .y = r.output(s.rows(), s.F)});
    run(r.context, WeightedSwigluBackward<T>{.x = x,
                                             .weights = weights,
                                             .pairs = to.pairs,
                                             .dy = dy,
                                             .dx = r.output(s.rows(), 2 * s.F),
                                             .dweights = r.template output<A>(s.N, s.k)});
    const Matrix<T> in_place = r.inout(s.rows(), 2 * s.F, 2);
    run(r.context, WeightedSwigluBackward<T>{.x = in_place,
                                             .weights = weights,
                                             .pairs = to.pairs,
                                             .dy = dy,
                                             .dx = in_place,
                                             .dweights = r.template output<A>(s.N, s.k)});
  });
  checker.check("combine", s.text(), [=]<class T>(Run<T>& r) {
    const Routing to = draw_routing(r, s);
    const Matrix<T> values = r.input(s.rows(), s.D), added = r.inout(s.N, s.D);
    run(r.context, Combine<T>{.values = values, .rows = to.rows, .to = r.output(s.N, s.D)});
    run(r.context, Combine<T>{.values = values, .rows = to.rows, .added = added, .to = added});
  });
}

}  // namespace

void check_experts(Checker& checker) {
  check_routing(checker, 37, 2, 6);
  check_routing(checker, 131, 8, 128);
  check_routing(checker, 5, 9, 300);
  // Tiles for few, more and many rows per expert; extents that are not multiples of 8.
  for (const ExpertShape& s : {ExpertShape{13, 2, 9, 72, 40}, ExpertShape{64, 8, 128, 128, 24},
                               ExpertShape{40, 3, 5, 136, 72}, ExpertShape{300, 4, 6, 264, 192},
                               ExpertShape{21, 2, 4, 37, 21}}) {
    check_grouped(checker, s);
    check_between_products(checker, s);
  }
}

}  // namespace tern::checks
