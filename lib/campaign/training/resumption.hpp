/// What a resumed run says about its start.
#pragma once
#include <string>

#include "campaign/training/state.hpp"
#include "deck/deck.hpp"

namespace tern::campaign {

/// The jump of the learning rate if the schedule of `now` gives the next step of the run another
/// rate than that of `before`, the checkpoint's deck, would have given it; empty if it is the same
/// within 1% of the peak.
std::string rate_jump(const deck::Deck& before, const deck::Deck& now, const TrainState& state);

/// Why a resumed run ends without a step, and what to change to train on: steps, hours, the target
/// or patience, in the order in which the training loop looks at them; empty if none of them ends
/// it.
std::string nothing_left(const deck::Deck& deck, const TrainState& state);

}  // namespace tern::campaign
