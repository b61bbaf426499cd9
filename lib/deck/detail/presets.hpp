/// Presets given with --set, and the values of the deck that they replace.
#pragma once
#include <string>
#include <vector>

#include "deck/detail/table.hpp"

namespace tern::deck::detail {

/// A value of the deck's text that a preset replaces.
struct Replaced {
  std::string preset;  // "objective.preset=aggressive"
  Field* field;        // of the table
  std::string value;   // before
};

/// A preset, or a rule of the learning rate, that an override names replaces what the deck's text
/// says of the values it sets: these then count as not given. Values of overrides are left, and
/// contradict the preset as two values of a deck do.
std::vector<Replaced> replace_by_presets(Table& table);

/// A line per preset with the values that have changed by it, once the deck is resolved.
std::vector<std::string> notes_of(const std::vector<Replaced>& replaced);

}  // namespace tern::deck::detail
