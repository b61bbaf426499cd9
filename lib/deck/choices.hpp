/// Deck names as enums: the only place that compares such strings. Fields list their choices from
/// here.
#pragma once
#include <array>

#include "base/activation.hpp"
#include "base/error.hpp"
#include "deck/deck.hpp"

namespace tern::deck {

template <class Kind>
struct Choice {
  Kind kind;
  const char* name;
};

enum class Norm { rmsnorm, layernorm };
inline constexpr std::array norms = {Choice<Norm>{Norm::rmsnorm, "rmsnorm"},
                                     Choice<Norm>{Norm::layernorm, "layernorm"}};

/// Position encoding: rotary, learned embedding, or none.
enum class Position { rope, learned, none };
inline constexpr std::array positions = {Choice<Position>{Position::rope, "rope"},
                                         Choice<Position>{Position::learned, "learned"},
                                         Choice<Position>{Position::none, "none"}};

/// Whether backward recomputes each block's forward.
inline constexpr std::array recomputations = {Choice<bool>{false, "none"},
                                              Choice<bool>{true, "block"}};

/// Throws InternalError for an unknown name: read() has refused it before.
template <class Choices>
auto kind_of(const Choices& choices, const std::string& name) {
  for (const auto& choice : choices)
    if (name == choice.name) return choice.kind;
  TERN_REQUIRE(false, "no choice '{}'", name);
}

inline Activation activation_of(const Model& model) {
  return kind_of(activation_kinds, model.activation);
}
inline Norm norm_of(const Model& model) { return kind_of(norms, model.norm); }
inline Position position_of(const Model& model) { return kind_of(positions, model.position); }
inline bool recomputes(const Precision& precision) {
  return kind_of(recomputations, precision.recompute);
}

}  // namespace tern::deck
