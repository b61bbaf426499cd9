#include "checks/detail/families.hpp"

#include "ops/elementwise/elementwise.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_shape(Checker& checker, std::size_t N, std::size_t D) {
  const std::string shape = fmt::format("N {} D {}", N, D);
  checker.check("add", shape, [=]<class T>(Run<T>& r) {
    auto x = r.input(N, D);
    add<T>(r.context, x, r.inout(N, D));
  });
  // Terms of N rows, of one row, and empty ones.
  checker.check("sum", shape, [=]<class T>(Run<T>& r) {
    auto x = r.input(N, D), y = r.input(N, D), z = r.input(N, D);
    auto row = r.input(1, D);
    sum<T>(r.context, x, y, z, r.output(N, D));
    sum<T>(r.context, x, row, z, r.output(N, D));
    sum<T>(r.context, row, {}, y, r.output(N, D));
    sum<T>(r.context, {}, {}, row, r.output(N, D));
  });
  checker.check("convert", shape, [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    auto wide = r.template input<A>(N * D);
    auto narrow = r.input(N * D);
    convert<A, T>(r.context, wide, r.output(N * D));
    convert<T, A>(r.context, narrow, r.template output<A>(N * D));
  });
}

}  // namespace

void check_elementwise(Checker& checker) {
  check_shape(checker, 61, 1032);
  check_shape(checker, 13, 37);
}

}  // namespace tern::checks
