#include "checks/detail/families.hpp"

#include "ops/optimizer/optimizer.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_adamw(Checker& checker, std::size_t n, double scale) {
  checker.check("adamw", fmt::format("n {} scale {}", n, scale), [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    auto master = r.template inout<A>(n), m = r.template inout<A>(n, 0.1);
    auto v = r.template inout<A>(n, 0.0);
    auto gradient = r.template input<A>(n);
    auto gradient_scale = r.template inout<A>(1, 0.0);
    Kokkos::deep_copy(r.context.space, gradient_scale, static_cast<A>(scale));
    Kokkos::deep_copy(r.context.space, v, static_cast<A>(0.01));
    auto copy = scale > 0 ? r.output(n) : r.inout(n);
    run(r.context, AdamWUpdate<T>{.rule = {1e-3, 0.9, 0.95, 1e-8, 0.1, 3},
                                  .master = master,
                                  .gradient = gradient,
                                  .gradient_scale = gradient_scale,
                                  .m = m,
                                  .v = v,
                                  .copy = copy});
  });
}

}  // namespace

void check_optimizer(Checker& checker) {
  check_adamw(checker, 100003, 0.5);
  check_adamw(checker, 1024, 0.0);
}

}  // namespace tern::checks
