/// The names of a deck's choices and what they stand for; the table of fields lists them from here.
#pragma once
#include <array>

#include "deck/choices.hpp"

namespace tern::deck::detail {

template <class Kind>
struct Choice {
  Kind kind;
  const char* name;
};

inline constexpr std::array norms = {Choice<Norm>{Norm::rmsnorm, "rmsnorm"},
                                     Choice<Norm>{Norm::layernorm, "layernorm"}};
inline constexpr std::array positions = {Choice<Position>{Position::rope, "rope"},
                                         Choice<Position>{Position::learned, "learned"},
                                         Choice<Position>{Position::none, "none"}};
inline constexpr std::array recomputations = {Choice<bool>{false, "none"},
                                              Choice<bool>{true, "block"}};

}  // namespace tern::deck::detail
