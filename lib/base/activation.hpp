/// Activations of MLPs, one line each: the deck's choices, parameter shapes and operations follow.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace tern {

enum class Activation { swiglu, gelu, relu2 };  // Shazeer 2020; tanh form, as GPT-2; So et al. 2021

struct ActivationKind {
  Activation kind;
  const char* name;
  bool gated;  // input is [gate | up], twice as wide as the output
};
inline constexpr std::array activation_kinds = {
    ActivationKind{Activation::swiglu, "swiglu", true},
    ActivationKind{Activation::gelu, "gelu", false},
    ActivationKind{Activation::relu2, "relu2", false},
};

constexpr const ActivationKind& kind_of(Activation activation) {
  return activation_kinds[static_cast<std::size_t>(activation)];
}
static_assert(
    [] {
      for (std::size_t i = 0; i < activation_kinds.size(); ++i)
        if (activation_kinds[i].kind != static_cast<Activation>(i)) return false;
      return true;
    }(),
    "a row per activation, in the order of the enumeration");

constexpr bool gated(Activation activation) { return kind_of(activation).gated; }

}  // namespace tern
