#include "report/detail/advice.hpp"

#include <fmt/format.h>

#include "deck/optimizer_kind.hpp"
#include "deck/rules.hpp"
#include "report/verdict.hpp"

namespace tern::report::detail {
namespace {

// A preset's values cannot be changed one by one.
std::string change_reward(const deck::Objective& objective, const char* how, const char* where) {
  if (objective.preset == "none")
    return fmt::format("{} &objective reward {} {:g}", how, where, objective.reward);
  return fmt::format("write &objective preset = 'none' with the values of '{}', but reward {} {:g}",
                     objective.preset, where, objective.reward);
}

}  // namespace

std::string raise_reward(const deck::Deck& deck) {
  return change_reward(deck.objective, "raise", "above");
}

std::string lower_reward(const deck::Deck& deck) {
  return deck.objective.reward > 0 ? change_reward(deck.objective, "lower", "below")
                                   : lower_rate(deck);
}

std::string lower_rate(const deck::Deck& deck) {
  const deck::Optimizer& o = deck.optimizer;
  const bool own = deck::kind_of(o).reads("matrix_lr") && o.matrix_lr > 0;
  return fmt::format("lower &optimizer {} below {:g}, or raise warmup_steps above {}",
                     own ? "matrix_lr" : "lr", own ? o.matrix_lr : o.lr, o.warmup_steps);
}

std::string stabilize(const deck::Deck& deck) {
  return deck.objective.preset == "aggressive" ? lower_rate(deck)
                                               : "set &objective preset = 'aggressive'";
}

std::string lengthen(const deck::Deck& deck) {
  const deck::Campaign& c = deck.campaign;
  return deck::timed(c) ? fmt::format("raise &campaign max_hours above {:g}", c.max_hours)
                        : fmt::format("raise &campaign max_steps above {}", c.max_steps);
}

std::string log_more(const deck::Deck& deck) {
  constexpr auto least = std::int64_t(verdict_bars::min_logged);
  if (deck::timed(deck.campaign)) return "lower &output log_every, or raise &campaign max_hours";
  const std::int64_t steps = deck.campaign.max_steps - deck.optimizer.warmup_steps;
  if (steps < least)
    return fmt::format("raise &campaign max_steps to at least {}",
                       deck.optimizer.warmup_steps + least);
  if (deck.output.log_every > steps / least)
    return fmt::format("lower &output log_every to at most {}", steps / least);
  return "let the run end: resume with --resume";
}

std::string evaluate_more(const deck::Deck& deck) {
  if (deck.evaluation.every == 0 && deck::timed(deck.campaign))
    return "raise &evaluation every from 0";
  if (deck.evaluation.every == 0)
    return fmt::format("raise &evaluation every from 0, to {} or so",
                       std::max<std::int64_t>(1, deck.campaign.max_steps / 4));
  return "let the run end, which evaluates: resume with --resume";
}

}  // namespace tern::report::detail
