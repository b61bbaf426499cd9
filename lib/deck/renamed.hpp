/// Names of earlier versions, in decks that runs and checkpoints have stored.
#pragma once
#include <string>
#include <string_view>

#include "deck/deck.hpp"

namespace tern::deck {

/// Remedy for a name that an earlier version had in `group`: "; did you mean 'NAME'?" or how to
/// convert the value. Empty for other names.
std::string successor(std::string_view group, std::string_view name);

/// Text that print() of this or an earlier version wrote, in this version's names; its lines keep
/// their numbers.
std::string in_current_names(std::string printed);

/// parse() of a deck that a run or a checkpoint stored. Throws UserError if this version cannot read
/// it.
Deck parse_stored(const std::string& printed, const std::string& name);

}  // namespace tern::deck
