/// The decks that come with the program: found by name, and listed.
#pragma once
#include <filesystem>
#include <ostream>
#include <string>

namespace tern::campaign {

/// The deck that `given` names: a path, or the name of a deck of input/, with or without ".in".
/// UserError, with the nearest name, if there is none.
std::filesystem::path find_deck(const std::string& given);

/// The decks of input/, or the runs and decks of `folder`; a run's own deck.in is not listed.
/// Decks for one machine's processors (fp32) come first, then by GPUs, as in h100x8_NAME.in, then by
/// the size of the model.
void list(const std::string& folder, std::ostream& out);

}  // namespace tern::campaign
