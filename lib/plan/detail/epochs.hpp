/// &campaign epochs as optimizer steps. Epochs follow each other without a gap, so that each step
/// has its `global` rows or samples: a step may span two epochs, and the last step is filled up
/// with the first rows of a further epoch.
#pragma once
#include "data/step_rows.hpp"
#include "deck/deck.hpp"

namespace tern::plan::detail {

/// Steps per epoch: rows, or with &batch unit = 'samples' samples, over global.
double steps_per_epoch(const deck::Deck& deck, const data::SetSize& size);

/// The deck, its batch resolved, with max_steps = ceil(epochs x steps per epoch) instead of epochs.
/// Throws UserError if its schedule (warmup, decay) contradicts the number of steps.
deck::Deck with_steps(deck::Deck deck, const data::SetSize& size);

}  // namespace tern::plan::detail
