/// Differences between two decks.
#pragma once
#include <string>
#include <vector>

#include "deck/deck.hpp"

namespace tern::deck {

struct Difference {
  std::string group, name;
  std::string first, second;  // in namelist syntax
};

/// Every field whose value differs, in the order of the reference.
std::vector<Difference> differences(const Deck& first, const Deck& second);

/// Fields in which the two models compute differently: without choices of training (Field's
/// of_training) and fields that have no effect in either model.
std::vector<Difference> model_differences(const Model& first, const Model& second);

/// "model.heads = 4", one for every field, in the order of the reference.
std::vector<std::string> settings(const Deck& deck);

/// "model.heads = 4, not 8", one line per difference.
std::string text_of(const std::vector<Difference>& differences);

}  // namespace tern::deck
