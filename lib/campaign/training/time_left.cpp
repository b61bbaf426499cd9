#include "campaign/training/time_left.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "deck/rules.hpp"

namespace tern::campaign {
namespace {

constexpr double remembered_seconds = 600, remembered_steps = 100;

/// Multiples of `every` from `first` on and below `end`; none if every = 0.
double multiples(std::int64_t every, std::int64_t first, std::int64_t end) {
  if (every <= 0 || end <= first) return 0;
  return static_cast<double>((end - 1) / every - (first - 1) / every);
}

}  // namespace

void TimeLeft::step(double seconds, double rows) {
  if (!started_) {
    started_ = true;
    return;
  }
  const double fades = std::min(1 / remembered_steps, seconds / remembered_seconds);
  seconds_ = seconds_ * std::exp(-fades) + seconds;
  rows_ = rows_ * std::exp(-fades) + rows;
}

std::optional<double> TimeLeft::seconds(std::int64_t step, double rows_left, double elapsed) const {
  const bool timed = deck::timed(deck_.campaign), known = rows_ > 0;
  const double row = known ? seconds_ / rows_ : 0;
  const double save = save_.value_or(0);
  const double evaluation =
      evaluation_.value_or(row * static_cast<double>(deck_.evaluation.rows) / 3 + save);
  const double hours = std::max(0.0, 3600 * deck_.campaign.max_hours - elapsed);
  if (timed || (!known && deck_.campaign.max_hours > 0)) return hours + evaluation;
  if (!known) return std::nullopt;
  const std::int64_t steps = deck_.campaign.max_steps;
  const std::int64_t evaluations = deck_.evaluation.every, saves = deck_.checkpoint.every;
  // Where both are due, the evaluation's checkpoint serves.
  const bool meet = 0 < evaluations && evaluations < steps && 0 < saves && saves < steps;
  const double both = meet ? multiples(std::lcm(evaluations, saves), step, steps) : 0;
  const double all = rows_left * row + multiples(evaluations, step, steps) * evaluation +
                     (multiples(saves, step, steps) - both) * save;
  return (deck_.campaign.max_hours > 0 ? std::min(all, hours) : all) + evaluation;
}

}  // namespace tern::campaign
