#include "checks/detail/families.hpp"

#include "ops/activation/activation.hpp"
#include "ops/elementwise/dropout.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_kind(Checker& checker, Activation kind, std::size_t N, std::size_t F) {
  checker.check(kind_of(kind).name, fmt::format("N {} F {}", N, F), [=]<class T>(Run<T>& r) {
    const std::size_t width = gated(kind) ? 2 * F : F;
    auto x = r.input(N, width, 2), dy = r.input(N, F);
    activation_forward<T>(r.context, kind, x, r.output(N, F));
    activation_backward<T>(r.context, kind, x, dy, r.output(N, width));
    auto in_place = r.inout(N, width, 2);
    activation_backward<T>(r.context, kind, in_place, dy, in_place);
  });
}

/// The numbers drawn are the same on both sides, so that the same elements are zero.
void check_dropout(Checker& checker, std::size_t N, std::size_t D) {
  checker.check("dropout", fmt::format("N {} D {}", N, D), [=]<class T>(Run<T>& r) {
    const DropoutKey key{0.3, 11, 5, 2, 100};
    auto x = r.input(N, D), stream = r.input(N, D);
    dropout<T>(r.context, key, x, {}, r.output(N, D));
    dropout<T>(r.context, key, x, stream, r.output(N, D));
    auto in_place = r.inout(N, D), sum = r.inout(N, D);
    dropout<T>(r.context, key, in_place, {}, in_place);
    dropout<T>(r.context, key, x, sum, sum);
  });
}

}  // namespace

void check_activation(Checker& checker) {
  for (const ActivationKind& one : activation_kinds) {
    check_kind(checker, one.kind, 51, 344);
    check_kind(checker, one.kind, 300, 2752);
    check_kind(checker, one.kind, 13, 37);
  }
  check_dropout(checker, 300, 1032);
  check_dropout(checker, 13, 37);
}

}  // namespace tern::checks
