#include "checks/detail/families.hpp"

#include <cmath>

#include "ops/loss.hpp"

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
    head_loss_forward<T>(r.context, {.options = options,
                                     .x = x,
                                     .w = w,
                                     .targets = targets,
                                     .logits = space,
                                     .losses = r.template output<A>(N)});
    auto losses = r.template output<A>(N);
    auto dx = r.output(N, D);
    head_loss_backward<T>(r.context, {.options = options,
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

}  // namespace

void check_loss(Checker& checker) {
  check_head(checker, 150, 136, 1008, 64, {0, 1003});
  check_head(checker, 70, 64, 5000, 128, {1e-4, 0});
  check_head(checker, 40, 33, 131, 16, {0, 0});
  check_head(checker, 150, 136, 1008, 64, {0, 1003, 15});
  check_head(checker, 70, 64, 5000, 128, {1e-4, 0, 2});
  check_head(checker, 40, 33, 131, 16, {0, 0, 3});
}

}  // namespace tern::checks
