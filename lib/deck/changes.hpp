/// Differences between a checkpoint's deck and the deck of the run that reads it.
#pragma once
#include <string>
#include <vector>

#include "deck/differences.hpp"

namespace tern::deck {

struct DeckChanges {
  bool readable = true;                  // false: this version cannot read the checkpoint's deck
  Deck before;                           // that deck, if readable
  std::vector<deck::Difference> model;   // fields that define the meaning of weights
  std::vector<deck::Difference> others;  // all others that change what training does
};

/// `stored`: deck text in the checkpoint, also of earlier versions.
DeckChanges changes_of(const std::string& stored, const deck::Deck& deck);

}  // namespace tern::deck
