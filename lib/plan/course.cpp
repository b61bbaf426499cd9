#include "plan/course.hpp"

#include <algorithm>
#include <cmath>

#include "deck/rules.hpp"

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
  double row, evaluation, checkpoint, last;  // seconds each
  data::StepRows steps;
};

Course after(std::int64_t steps, const deck::Deck& deck, const Durations& durations) {
  const std::int64_t every = deck.evaluation.every;
  // Evaluations before the first step, at intervals, and at the end; a checkpoint before each but
  // the first.
  const double between = times(steps, every);
  const double last = every > 0 && steps % every == 0 ? 0 : 1;
  Course course;
  course.steps = steps;
  course.training = durations.steps.rows_in(static_cast<std::uint64_t>(steps)) * durations.row;
  course.evaluations = ((every > 0 ? 1 : 0) + between + last) * durations.evaluation;
  course.checkpoints =
      (between + last + times(steps, deck.checkpoint.every)) * durations.checkpoint +
      durations.last;
  return course;
}

/// The most steps below `too_many` that fit. By bisection: evaluations and checkpoints make step
/// times uneven.
template <class Fit>
std::int64_t most(std::int64_t too_many, const Fit& fit) {
  std::int64_t fits = 0;
  while (too_many - fits > 1) {
    const std::int64_t middle = fits + (too_many - fits) / 2;
    (fit(middle) ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace

double Course::dollars(const deck::Deck& deck, int ranks) const {
  return seconds() / 3600 * ranks * deck.cost.dollars_per_gpu_hour;
}

bool may_be_shorter(const deck::Deck& deck, const Course& course) {
  return course.earliest > 0 || deck.evaluation.target_loss > 0;
}

Course course(const Plan& plan, double rate, int writers) {
  const deck::Deck& deck = plan.deck;
  const double row = plan.contents.tokens() / rate;
  const double bytes = static_cast<double>(plan.checkpoint_bytes) / writers;
  const Durations durations{row, static_cast<double>(deck.evaluation.rows) * row / 3,
                            bytes / copied, bytes / written, plan.layout.steps};
  const double limit = 3600 * deck.campaign.max_hours;
  const auto fit = [&](std::int64_t steps) {
    return after(steps, deck, durations).seconds() <= limit;
  };
  std::int64_t too_many = plan.steps;
  if (deck::timed(deck.campaign))
    for (too_many = 1; fit(too_many);) too_many *= 2;
  const Course whole = after(plan.steps, deck, durations);
  Course reached = whole;
  if (limit > 0 && !fit(too_many)) {
    reached = after(most(too_many, fit), deck, durations);
    reached.cut = plan.steps > 0;
  }
  // The first evaluation after a step is the best so far.
  const std::int64_t earliest = (deck.evaluation.patience + 1) * deck.evaluation.every;
  if (deck.evaluation.patience > 0 && earliest < reached.steps) {
    reached.earliest = earliest;
    reached.earliest_seconds = after(earliest, deck, durations).seconds();
  }
  reached.all = plan.steps > 0 ? whole.seconds() : reached.seconds();
  return reached;
}

}  // namespace tern::plan
