#include "checks/cases/activation.hpp"
#include "checks/detail/families.hpp"
#include "ops/elementwise/dropout.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_kind(Checker& checker, Activation kind, std::size_t N, std::size_t F) {
  for (const bool in_place : {false, true})
    checker.check(kind_of(kind).name,
                  fmt::format("N {} F {}{}", N, F, in_place ? ", in place" : ""),
                  [=]<class T>(Run<T>& r) {
                    ActivationCase{kind, N, F, in_place}.run<T>(r.context, r);
                  });
}

/// The numbers drawn are the same on both sides, so that the same elements are zero.
void check_dropout(Checker& checker, std::size_t N, std::size_t D) {
  checker.check("dropout", fmt::format("N {} D {}", N, D), [=]<class T>(Run<T>& r) {
    const DropoutKey key{0.3, 11, 5, 2, 100};
    auto x = r.input(N, D), stream = r.input(N, D);
    run(r.context, Dropout<T>{.key = key, .x = x, .y = r.output(N, D)});
    run(r.context, Dropout<T>{.key = key, .x = x, .added = stream, .y = r.output(N, D)});
    auto in_place = r.inout(N, D), sum = r.inout(N, D);
    run(r.context, Dropout<T>{.key = key, .x = in_place, .y = in_place});
    run(r.context, Dropout<T>{.key = key, .x = x, .added = sum, .y = sum});
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
