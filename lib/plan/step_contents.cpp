#include "plan/step_contents.hpp"

#include "deck/rules.hpp"
#include "plan/detail/epochs.hpp"
#include "plan/detail/rows.hpp"

namespace tern::plan {

using detail::mean_text;

std::optional<double> steps_per_epoch(const Plan& plan) {
  if (!plan.data.known()) return std::nullopt;
  return detail::steps_per_epoch(plan.deck, plan.data);
}

std::optional<double> samples_per_step(const Plan& plan) {
  if (!plan.data.known() || !deck::holds_samples(plan.deck.data)) return std::nullopt;
  return plan.layout.steps.mean() * plan.data.per_row();
}

std::string step_text(const Plan& plan) {
  const std::string rows = mean_text(plan.layout.steps.mean()) + " rows";
  const auto samples = samples_per_step(plan);
  return samples ? fmt::format("{} samples in {}", mean_text(*samples), rows) : rows;
}

std::string updates_text(const Plan& plan) {
  const bool timed = deck::timed(plan.deck.campaign);
  return fmt::format("updates: {}, {} per epoch; each of {}",
                     timed ? "until max_hours" : fmt::format("{}", plan.steps),
                     mean_text(*steps_per_epoch(plan)), step_text(plan));
}

}  // namespace tern::plan
