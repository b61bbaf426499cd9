/// Differences between a checkpoint's deck and the deck of the run that reads it.
#pragma once
#include <string>
#include <vector>

#include "deck/differences.hpp"

namespace tern::deck {

struct DeckChanges {
  bool readable = true;                  // false: this version cannot read the checkpoint's deck
  std::vector<deck::Difference> model;   // fields that define the meaning of weights
  std::vector<deck::Difference> others;  // all others that should not change in a run
};

/// `stored`: deck text in the checkpoint.
DeckChanges changes_of(const std::string& stored, const deck::Deck& deck);

}  // namespace tern::deck
