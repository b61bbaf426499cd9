#include "checks/detail/families.hpp"

#include "ops/elementwise/elementwise.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_shape(Checker& checker, std::size_t N, std::size_t D) {
  const std::string shape = fmt::format("N {} D {}", N, D);
  checker.check("add", shape, [=]<class T>(Run<T>& r) {
    auto x = r.input(N, D);
    run(r.context, Add<T>{.x = x, .y = r.inout(N, D)});
  });
  // Terms of N rows, of one row, and empty ones.
  checker.check("sum", shape, [=]<class T>(Run<T>& r) {
    auto x = r.input(N, D), y = r.input(N, D), z = r.input(N, D);
    auto row = r.input(1, D);
    run(r.context, Sum<T>{.a = x, .b = y, .c = z, .to = r.output(N, D)});
    run(r.context, Sum<T>{.a = x, .b = row, .c = z, .to = r.output(N, D)});
    run(r.context, Sum<T>{.a = row, .b = {}, .c = y, .to = r.output(N, D)});
    run(r.context, Sum<T>{.a = {}, .b = {}, .c = row, .to = r.output(N, D)});
  });
  checker.check("convert", shape, [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    auto wide = r.template input<A>(N * D);
    auto narrow = r.input(N * D);
    run(r.context, Convert<A, T>{.from = wide, .to = r.output(N * D)});
    run(r.context, Convert<T, A>{.from = narrow, .to = r.template output<A>(N * D)});
  });
}

}  // namespace

void check_elementwise(Checker& checker) {
  check_shape(checker, 61, 1032);
  check_shape(checker, 13, 37);
}

}  // namespace tern::checks
