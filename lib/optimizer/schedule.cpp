#include "optimizer/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "base/error.hpp"
#include "deck/rules.hpp"

namespace tern::optimizer {
namespace {

struct Course {
  double lr, min_lr;
  double decay;  // wsd: fraction of the steps after warmup in which the rate falls
};
/// Rate at `progress` in [0, 1] of the steps after warmup.
using Schedule = double (*)(const Course&, double progress);

double falling(const Course& c, double share) { return c.lr + (c.min_lr - c.lr) * share; }

const std::map<std::string, Schedule>& schedules() {
  static const std::map<std::string, Schedule> all{
      {"cosine",
       [](const Course& c, double progress) {
         return falling(c, 0.5 * (1 - std::cos(3.14159265358979323846 * progress)));
       }},
      {"linear", [](const Course& c, double progress) { return falling(c, progress); }},
      {"wsd",
       [](const Course& c, double progress) {
         const double start = 1 - c.decay;
         return progress <= start ? c.lr : falling(c, (progress - start) / c.decay);
       }},
      {"constant", [](const Course& c, double) { return c.lr; }},
  };
  return all;
}

/// `progress` of what follows the warmup; `decay`: share of it in which 'wsd' falls.
double rate_at(const deck::Optimizer& optimizer, std::int64_t step, double progress, double decay) {
  const auto warmup = optimizer.warmup_steps;
  if (step <= warmup) return optimizer.lr * static_cast<double>(step) / static_cast<double>(warmup);
  const auto found = schedules().find(optimizer.schedule);
  TERN_REQUIRE(found != schedules().end(), "schedule '{}'", optimizer.schedule);
  return found->second({optimizer.lr, optimizer.min_lr, std::min(1.0, decay)},
                       std::min(1.0, progress));
}

}  // namespace

double learning_rate(const deck::Optimizer& optimizer, std::int64_t step, std::int64_t max_steps) {
  const auto warmup = optimizer.warmup_steps;
  const double rest = static_cast<double>(std::max<std::int64_t>(1, max_steps - warmup));
  return rate_at(optimizer, step, static_cast<double>(step - warmup) / rest,
                 optimizer.decay_fraction * static_cast<double>(max_steps) / rest);
}

double learning_rate(const deck::Optimizer& optimizer, std::int64_t step, const Elapsed& elapsed) {
  const double rest = std::max(1e-9, 1 - elapsed.warmup);
  return rate_at(optimizer, step, std::max(0.0, elapsed.now - elapsed.warmup) / rest,
                 optimizer.decay_fraction / rest);
}

double learning_rate(const deck::Deck& deck, std::int64_t step, double seconds,
                     double warmup_seconds) {
  if (!deck::timed(deck.campaign))
    return learning_rate(deck.optimizer, step, deck.campaign.max_steps);
  const double whole = 3600 * deck.campaign.max_hours;
  return learning_rate(deck.optimizer, step,
                       Elapsed{seconds / whole, std::min(1.0, warmup_seconds / whole)});
}

}  // namespace tern::optimizer
