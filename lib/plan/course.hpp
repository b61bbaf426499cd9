/// Steps, time and cost of a run at a known training rate.
#pragma once
#include "plan/plan.hpp"

namespace tern::plan {

/// The longest course: &evaluation patience and target_loss may end a run earlier (may_be_shorter).
/// Evaluations are counted as forward passes, a third of the training cost of their rows;
/// checkpoints with the time for which the run waits. Solving problems and writing samples are not
/// counted.
struct Course {
  std::int64_t steps = 0;                                 // reached,
  bool cut = false;                                       // fewer than asked, limited by max_hours
  double training = 0, evaluations = 0, checkpoints = 0;  // seconds of those steps
  double all = 0;                                         // seconds of all steps asked for
  std::int64_t earliest = 0;  // step at which &evaluation patience may end it first; 0: it may not
  double earliest_seconds = 0;
  double seconds() const { return training + evaluations + checkpoints; }
  double dollars(const deck::Deck& deck, int ranks) const;
};

/// Whether an evaluation may end the run before its last step.
bool may_be_shorter(const deck::Deck& deck, const Course& course);

/// `rate`: tokens/s over all ranks; `writers`: ranks that write a part of the checkpoint each.
Course course(const Plan& plan, double rate, int writers);

}  // namespace tern::plan
