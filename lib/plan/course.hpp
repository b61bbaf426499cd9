/// How a run goes on from its rate: how far, how long, and what it costs.
#pragma once
#include "plan/plan.hpp"

namespace tern::plan {

/// Of a run that trains at a known rate. Evaluations are taken as passes forward, a third of what
/// their rows cost in training; of checkpoints what the run waits for. Solving problems and writing
/// samples are not counted.
struct Course {
  std::int64_t steps = 0;                                 // that are reached,
  bool cut = false;                                       // fewer than asked, by max_hours
  double training = 0, evaluations = 0, checkpoints = 0;  // seconds of those steps
  double all = 0;  // seconds of all steps that were asked for
  double seconds() const { return training + evaluations + checkpoints; }
  double dollars(const deck::Deck& deck, int ranks) const;
};

/// `rate`: tokens/s of all ranks, `writers` of which write a part of the checkpoint each.
Course course(const Plan& plan, double rate, int writers);

}  // namespace tern::plan
