#include "plan/course.hpp"

#include <algorithm>
#include <cmath>

namespace tern::plan {
namespace {

// Bytes/s per rank, typical of nodes with local disks: the host copy, for which training waits, and
// the file, written while training continues, except the last one.
constexpr double copied = 5e9, written = 1e9;

/// Occurrences in `steps` steps of what is done every `every` steps.
double times(std::int64_t steps, std::int64_t every) {
  return every > 0 ? std::floor(static_cast<double>(steps) / static_cast<double>(every)) : 0;
}

struct Durations {
  double step, evaluation, checkpoint, last;  // seconds each
};

Course after(std::int64_t steps, const deck::Deck& deck, const Durations& durations) {
  const std::int64_t every = deck.evaluation.every;
  // Evaluations before the first step, at intervals, and at the end; a checkpoint before each but
  // the first.
  const double between = times(steps, every);
  const double last = every > 0 && steps % every == 0 ? 0 : 1;
  Course course;
  course.steps = steps;
  course.training = static_cast<double>(steps) * durations.step;
  course.evaluations = ((every > 0 ? 1 : 0) + between + last) * durations.evaluation;
  course.checkpoints =
      (between + last + times(steps, deck.checkpoint.every)) * durations.checkpoint +
      durations.last;
  return course;
}

}  // namespace

double Course::dollars(const deck::Deck& deck, int ranks) const {
  return seconds() / 3600 * ranks * deck.cost.dollars_per_gpu_hour;
}

Course course(const Plan& plan, double rate, int writers) {
  const deck::Deck& deck = plan.deck;
  const double row = plan.contents.tokens() / rate;
  const double bytes = static_cast<double>(plan.checkpoint_bytes) / writers;
  const Durations durations{
      static_cast<double>(plan.layout.global) * row,
      static_cast<double>(deck.evaluation.batches * deck.batch.per_rank) * row / 3, bytes / copied,
      bytes / written};
  const Course whole = after(plan.steps, deck, durations);
  const double limit = 3600 * deck.campaign.max_hours;
  Course reached = whole;
  if (limit > 0 && whole.seconds() > limit) {
    // Bisection for the most steps that fit: evaluations and checkpoints make step times uneven.
    std::int64_t fits = 0, too_many = plan.steps;
    while (too_many - fits > 1) {
      const std::int64_t middle = fits + (too_many - fits) / 2;
      (after(middle, deck, durations).seconds() <= limit ? fits : too_many) = middle;
    }
    reached = after(fits, deck, durations);
    reached.cut = true;
  }
  reached.all = whole.seconds();
  return reached;
}

}  // namespace tern::plan
