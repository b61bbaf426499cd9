/// Dynamic loss scaling of training in fp16 (Micikevicius et al. 2018, "Mixed precision training",
/// section 3.2): the gradient of the loss is multiplied by a power of two, so that small gradients
/// stay above 2^-24, and divided by it before clipping. A step whose gradients overflow is skipped
/// and halves the factor; many applied steps in a row double it.
#pragma once
#include "campaign/training/state.hpp"
#include "deck/deck.hpp"

namespace tern::campaign {

/// Factor of the next step; 1 unless compute = 'fp16'.
double loss_scale_of(const deck::Precision& precision, const TrainState& state);

/// Whether a smaller factor may keep the gradients of a skipped step finite. Then halves it; the
/// step is not a sign of divergence. `loss`: of the step.
bool shrink_loss_scale(const deck::Precision& precision, double loss, TrainState& state);

/// After an applied step. True if the factor doubled.
bool grow_loss_scale(const deck::Precision& precision, TrainState& state);

}  // namespace tern::campaign
