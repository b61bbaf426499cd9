#include "checks/detail/families.hpp"

#include "ops/activation.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_kind(Checker& checker, Activation kind, std::size_t N, std::size_t F) {
  const char* name = kind == Activation::swiglu ? "swiglu"
                     : kind == Activation::gelu ? "gelu"
                                                : "relu2";
  checker.check(name, fmt::format("N {} F {}", N, F), [=]<class T>(Run<T>& r) {
    const std::size_t width = kind == Activation::swiglu ? 2 * F : F;
    auto x = r.input(N, width, 2), dy = r.input(N, F);
    activation_forward<T>(r.context, kind, x, r.output(N, F));
    activation_backward<T>(r.context, kind, x, dy, r.output(N, width));
    auto in_place = r.inout(N, width, 2);
    activation_backward<T>(r.context, kind, in_place, dy, in_place);
  });
}

}  // namespace

void check_activation(Checker& checker) {
  for (const ActivationKind& one : activation_kinds) {
    check_kind(checker, one.kind, 51, 344);
    check_kind(checker, one.kind, 300, 2752);
    check_kind(checker, one.kind, 13, 37);
  }
}

}  // namespace tern::checks
