/// &campaign epochs as optimizer steps. Rows flow on from one pass over the data into the next, so
/// that each step has its `global` rows: a step may end one pass and begin the next, and the last
/// step is filled up with the first rows of the pass that would follow.
#pragma once
#include <cstddef>

#include "deck/deck.hpp"

namespace tern::plan::detail {

/// ceil(epochs x rows / global).
std::int64_t steps_of_epochs(std::int64_t epochs, std::size_t rows, std::int64_t global);

/// The deck with max_steps instead of its epochs. Throws UserError where what the deck says of
/// steps (warmup, decay) contradicts their number.
deck::Deck with_steps(deck::Deck deck, std::size_t rows, std::int64_t global);

}  // namespace tern::plan::detail
