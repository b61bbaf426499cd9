/// What differs between the deck of a checkpoint and the deck of the run that reads it.
#pragma once
#include <string>
#include <vector>

#include "deck/differences.hpp"

namespace tern::deck {

struct DeckChanges {
  bool readable = true;                  // the checkpoint's deck, by this version
  std::vector<deck::Difference> model;   // of what its weights mean
  std::vector<deck::Difference> others;  // of the run; files and lengths left out
};

/// `stored`: the deck's text in the checkpoint.
DeckChanges changes_of(const std::string& stored, const deck::Deck& deck);

}  // namespace tern::deck
