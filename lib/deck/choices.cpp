#include "deck/choices.hpp"

#include "base/error.hpp"
#include "deck/detail/choices.hpp"

namespace tern::deck {
namespace {

template <class Choices>
auto kind_of(const Choices& choices, const std::string& name) {
  for (const auto& choice : choices)
    if (name == choice.name) return choice.kind;
  TERN_REQUIRE(false, "no choice '{}'", name);
}

}  // namespace

Activation activation_of(const Model& model) { return kind_of(activation_kinds, model.activation); }
Norm norm_of(const Model& model) { return kind_of(detail::norms, model.norm); }
Position position_of(const Model& model) { return kind_of(detail::positions, model.position); }

bool recomputes(const Precision& precision) {
  return kind_of(detail::recomputations, precision.recompute);
}

}  // namespace tern::deck
