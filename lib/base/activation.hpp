/// Activations of MLPs, one line each: the deck's choices, parameter shapes and operations follow.
#pragma once
#include <array>
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

constexpr bool gated(Activation activation) {
  for (const ActivationKind& one : activation_kinds)
    if (one.kind == activation) return one.gated;
  return false;
}

}  // namespace tern
