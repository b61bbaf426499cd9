/// &campaign epochs as optimizer steps. Epochs follow each other without a gap, so that each step
/// has its `global` rows: a step may span two epochs, and the last step is filled up with the first
/// rows of a further epoch.
#pragma once
#include <cstddef>

#include "deck/deck.hpp"

namespace tern::plan::detail {

/// ceil(epochs x rows / global).
std::int64_t steps_of_epochs(std::int64_t epochs, std::size_t rows, std::int64_t global);

/// The deck, its batch resolved, with max_steps instead of epochs. Throws UserError if its schedule (warmup, decay)
/// contradicts the number of steps.
deck::Deck with_steps(deck::Deck deck, std::size_t rows);

}  // namespace tern::plan::detail
