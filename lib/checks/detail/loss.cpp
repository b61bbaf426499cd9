#include "checks/detail/families.hpp"

#include <cmath>

#include "ops/loss/loss.hpp"
#include "ops/loss/vocabulary.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_head(Checker& checker, std::size_t N, std::size_t D, std::size_t V, std::size_t chunk,
                const HeadOptions& options) {
  const std::string shape = fmt::format("N {} D {} V {}/{}", N, D, options.vocabulary, V);
  const char* name = options.cap > 0 ? "head_loss, capped" : "head_loss";
  checker.check(name, shape, [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    const auto last = static_cast<std::uint32_t>(options.vocabulary ? options.vocabulary : V);
    const auto targets = r.integers(r.draw_integers(N, last, 5));
    auto x = r.input(N, D), w = r.input(V, D, 2 / std::sqrt(static_cast<double>(D)));
    auto weights = r.template input<A>(N);
    auto logits = r.template workspace<T>(chunk * V);
    const Matrix<T> space(logits.data(), chunk, V);
    run(r.context, HeadLossForward<T>{.options = options,
                                      .x = x,
                                      .w = w,
                                      .targets = targets,
                                      .logits = space,
                                      .losses = r.template output<A>(N)});
    auto losses = r.template output<A>(N);
    auto dx = r.output(N, D);
    run(r.context, HeadLossBackward<T>{.options = options,
                                       .x = x,
                                       .w = w,
                                       .targets = targets,
                                       .weights = weights,
                                       .logits = space,
                                       .losses = losses,
                                       .dx = dx,
                                       .dw = r.template inout<A>(V, D)});
  });
}

/// With gradients in fp8, in chunks of which the last is not if its rows are no multiple of 16.
void check_head_in_fp8(Checker& checker, std::size_t N, std::size_t D, std::size_t V,
                       std::size_t chunk, const HeadOptions& options) {
  const std::string shape = fmt::format("N {} D {} V {}/{}", N, D, options.vocabulary, V);
  const auto body = [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    typename Fp8Workspace<T>::Sizes sizes;
    sizes.raise(chunk, D, V, true);
    const auto space = [&](Arena& arena) {
      return std::make_pair(Fp8Workspace<T>(arena, sizes),
                            arena.matrix<T>("logits", Term::workspace, chunk, V));
    };
    Arena measuring;
    space(measuring);
    HeadFp8<T>(measuring, {}, chunk);
    Arena arena(measuring.bytes());
    const auto [workspace, logits] = space(arena);
    const auto last = static_cast<std::uint32_t>(options.vocabulary ? options.vocabulary : V);
    run(r.context, HeadLossBackward<T>{.options = options,
                                       .x = r.input(N, D),
                                       .w = r.input(V, D, 2 / std::sqrt(static_cast<double>(D))),
                                       .targets = r.integers(r.draw_integers(N, last, 5)),
                                       .weights = r.template input<A>(N),
                                       .logits = logits,
                                       .losses = r.template output<A>(N),
                                       .dx = r.output(N, D),
                                       .dw = r.template inout<A>(V, D),
                                       .fp8 = {arena, workspace, chunk}});
    r.context.fence("check");
  };
  checker.check("head_loss, gradients in fp8", shape, body, 1e-3, Checker::Results::in_fp8);
}

/// The logits of N rows on two ranks, W columns each.
void check_parts(Checker& checker, std::size_t N, std::size_t W, const HeadOptions& options) {
  const std::string shape = fmt::format("N {} V {}/2x{}", N, options.vocabulary, W);
  checker.check("row_parts, row_gradients", shape, [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    const auto last = static_cast<std::uint32_t>(options.vocabulary ? options.vocabulary : 2 * W);
    const auto targets = r.integers(r.draw_integers(N, last, 5));
    const auto weights = r.template input<A>(N);
    const auto lse = r.template output<A>(N);
    const auto figures = r.template workspace<A>(2 * N * row_figures);
    const Matrix<T> parts[] = {r.inout(N, W, 2), r.inout(N, W, 2)};
    for (std::size_t rank = 0; rank < 2; ++rank)
      run(r.context, RowParts<T>{.logits = parts[rank],
                                 .first = rank * W,
                                 .vocabulary = options.vocabulary,
                                 .targets = targets,
                                 .figures = Matrix<A>(figures.data() + rank * N * row_figures, N,
                                                      row_figures)});
    const auto best = r.template inout<std::int32_t>(1, N);
    run(r.context, CombineRows<A>{.figures = Tensor3<const A>(figures.data(), 2, N, row_figures),
                                  .z_loss = options.z_loss,
                                  .targets = targets,
                                  .losses = r.template output<A>(N),
                                  .lse = lse,
                                  .best = Vector<std::int32_t>(best.data(), N)});
    for (std::size_t rank = 0; rank < 2; ++rank)
      run(r.context, RowGradients<T>{.options = options,
                                     .first = rank * W,
                                     .targets = targets,
                                     .weights = weights,
                                     .lse = lse,
                                     .logits = parts[rank]});
  });
}

}  // namespace

void check_loss(Checker& checker) {
  check_parts(checker, 37, 5000, {});
  check_parts(checker, 70, 504, {1e-4, 1003});
  check_parts(checker, 9, 504, {0, 500});  // the second rank has padding only
  check_parts(checker, 70, 504, {1e-4, 1003, 15});
  check_parts(checker, 40, 67, {0, 131});
  check_head(checker, 150, 136, 1008, 64, {0, 1003});
  check_head(checker, 70, 64, 5000, 128, {1e-4, 0});
  check_head(checker, 40, 33, 131, 16, {0, 0});
  check_head(checker, 150, 136, 1008, 64, {0, 1003, 15});
  check_head(checker, 70, 64, 5000, 128, {1e-4, 0, 2});
  check_head(checker, 40, 33, 131, 16, {0, 0, 3});
  check_head_in_fp8(checker, 160, 144, 1008, 64, {0, 1003});
  check_head_in_fp8(checker, 150, 144, 1008, 64, {1e-4, 1003, 15});
  check_head_in_fp8(checker, 96, 64, 5008, 96, {});
}

}  // namespace tern::checks
