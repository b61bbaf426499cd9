#include "campaign/training/loss_scale.hpp"

#include <cmath>

#include "deck/choices.hpp"
#include "deck/rules.hpp"

namespace tern::campaign {
namespace {

bool scales(const deck::Precision& precision) {
  return deck::compute_of(precision) == deck::Compute::fp16;
}

}  // namespace

double loss_scale_of(const deck::Precision& precision, const TrainState& state) {
  if (!scales(precision)) return 1;
  return state.loss_scale > 0 ? state.loss_scale : precision.loss_scale;
}

bool shrink_loss_scale(const deck::Precision& precision, double loss, TrainState& state) {
  const double scale = loss_scale_of(precision, state);
  if (!scales(precision) || !std::isfinite(loss) || scale <= 1) return false;
  state.loss_scale = scale / 2;
  ++state.overflowed;
  state.loss_scale_steps = 0;
  return true;
}

bool grow_loss_scale(const deck::Precision& precision, TrainState& state) {
  if (!scales(precision)) return false;
  state.loss_scale = loss_scale_of(precision, state);
  ++state.loss_scale_steps;
  if (precision.loss_scale_steps == 0 || state.loss_scale_steps < precision.loss_scale_steps ||
      state.loss_scale >= deck::largest_loss_scale)
    return false;
  state.loss_scale *= 2;
  state.loss_scale_steps = 0;
  return true;
}

}  // namespace tern::campaign
