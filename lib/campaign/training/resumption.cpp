#include "campaign/training/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "deck/rules.hpp"
#include "optimizer/schedule.hpp"

namespace tern::campaign {
namespace {

constexpr double noticeable = 0.01;  // fraction of the peak rate

/// What the schedule runs over.
std::string length_of(const deck::Campaign& c) {
  return deck::timed(c) ? fmt::format("max_hours = {}", c.max_hours)
                        : fmt::format("max_steps = {}", c.max_steps);
}

}  // namespace

std::string rate_jump(const deck::Deck& before, const deck::Deck& now, const TrainState& state) {
  if (state.step == 0) return {};
  const auto rate = [&](const deck::Deck& deck, std::int64_t step) {
    return optimizer::learning_rate(deck, step, state.seconds, state.warmup_seconds);
  };
  const double expected = rate(before, state.step + 1), given = rate(now, state.step + 1);
  const double peak = std::max(before.optimizer.lr, now.optimizer.lr);
  if (std::abs(given - expected) <= noticeable * peak) return {};
  const double last = rate(before, state.step);
  const std::string earlier = length_of(before.campaign), length = length_of(now.campaign);
  return fmt::format("the learning rate {} from {:.2e} at step {} to {:.2e} at step {}{}",
                     given > last ? "jumps up" : "falls", last, state.step, given, state.step + 1,
                     earlier == length ? ""
                                       : fmt::format(": schedule = '{}' runs over {} now, not {}",
                                                     now.optimizer.schedule, length, earlier));
}

std::string nothing_left(const deck::Deck& deck, const TrainState& s) {
  const deck::Campaign& c = deck.campaign;
  const deck::Evaluation& e = deck.evaluation;
  std::string reason, remedy;
  if (!deck::timed(c) && s.step >= c.max_steps) {
    reason = fmt::format("campaign.max_steps = {}", c.max_steps);
    remedy = c.epochs > 0 ? "raise campaign.epochs"
                          : fmt::format("set campaign.max_steps above {}", s.step);
  } else if (e.target_loss > 0 && s.validation_loss <= e.target_loss) {
    reason = fmt::format("its validation loss of {:.4f} reaches evaluation.target_loss = {}",
                         s.validation_loss, e.target_loss);
    remedy = "lower that";
  } else if (e.patience > 0 && s.evaluations_without_gain >= e.patience) {
    reason = fmt::format("{} evaluations without improvement reach evaluation.patience = {}",
                         s.evaluations_without_gain, e.patience);
    remedy = "raise that";
  } else if (c.max_hours > 0 && s.step > 0 && s.seconds > 3600 * c.max_hours) {
    reason = fmt::format("it has taken {:.2f} of campaign.max_hours = {}", s.seconds / 3600,
                         c.max_hours);
    remedy = "raise that";
  } else {
    return {};
  }
  return fmt::format("nothing was done: the run is at step {} already, and {}; {} to train on",
                     s.step, reason, remedy);
}

}  // namespace tern::campaign
