#include "report/detail/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/detail/advice.hpp"
#include "report/detail/stability.hpp"

namespace tern::report::detail {
namespace {

struct Entry {
  double step, value;  // value: NaN where it was not finite
};

/// All logged values of a metric, in step order.
std::vector<Entry> entries_of(const History& history, const std::string& name) {
  std::vector<Entry> finite, lost, all;
  if (const auto at = history.curves.find(name); at != history.curves.end())
    for (std::size_t i = 0; i < at->second.step.size(); ++i)
      finite.push_back({at->second.step[i], at->second.value[i]});
  if (const auto at = history.not_finite.find(name); at != history.not_finite.end())
    for (const double step : at->second) lost.push_back({step, unknown});
  std::merge(finite.begin(), finite.end(), lost.begin(), lost.end(), std::back_inserter(all),
             [](const Entry& a, const Entry& b) { return a.step < b.step; });
  return all;
}

/// Finite entries after the warmup.
std::vector<Entry> settled_entries(const History& history, const std::string& name,
                                   const deck::Deck& deck) {
  std::vector<Entry> entries = entries_of(history, name);
  std::erase_if(entries, [&](const Entry& entry) {
    return entry.step <= double(deck.optimizer.warmup_steps) || !std::isfinite(entry.value);
  });
  return entries;
}

std::vector<double> values_of(const std::vector<Entry>& entries) {
  std::vector<double> values;
  for (const Entry& entry : entries) values.push_back(entry.value);
  return values;
}

std::string step_name(const char* kind, std::size_t step) {
  return fmt::format("{}/loss_step_{}", kind, step);
}

std::size_t steps_of(const deck::Deck& deck) {
  return static_cast<std::size_t>(deck.objective.supervision_steps);
}

std::string range_text(const std::vector<double>& range) {
  return fmt::format("{:g} to {:g}", range[0], range[1]);
}

Finding expecting(std::string name, std::string expected) {
  Finding finding;
  finding.name = std::move(name);
  finding.expected = std::move(expected);
  return finding;
}

Finding missing(Finding finding, std::string what, std::string advice) {
  finding.grade = Grade::failure;
  finding.found = std::move(what);
  finding.advice = std::move(advice);
  return finding;
}

struct LastEvaluation {
  double step = 0;
  std::vector<double> losses;  // per answer
  std::string missing;         // missing metric, if any
};

LastEvaluation last_evaluation(const History& history, const deck::Deck& deck) {
  LastEvaluation last;
  for (const char* name : {"val/loss", "val/loss_step_0"})
    if (const auto all = entries_of(history, name); !all.empty())
      last.step = std::max(last.step, all.back().step);
  for (std::size_t s = 0; s < steps_of(deck); ++s) {
    const auto all = entries_of(history, step_name("val", s));
    if (all.empty() || all.back().step < last.step) {
      last.missing = fmt::format("no {}", step_name("val", s));
      if (!all.empty()) last.missing += fmt::format(" at step {}", last.step);
      return last;
    }
    last.losses.push_back(all.back().value);
  }
  return last;
}

/// Refinement of a complete evaluation with a positive first loss; else NaN.
double refinement_of(const LastEvaluation& last) {
  if (!last.missing.empty() || !(last.losses.front() > 0)) return unknown;
  return (last.losses.front() - last.losses.back()) / last.losses.front();
}

std::string missing_step_advice(const History& history, const deck::Deck& deck) {
  if (entries_of(history, "val/loss").empty()) return evaluate_more(deck);
  return fmt::format("judge by the deck of the run: &objective supervision_steps is {} here",
                     deck.objective.supervision_steps);
}

Finding order(const History& history, const LastEvaluation& last, const deck::Deck& deck) {
  Finding finding = expecting("order", "each answer's loss below the previous one's");
  if (!last.missing.empty())
    return missing(finding, last.missing, missing_step_advice(history, deck));
  const std::vector<double>& loss = last.losses;
  std::string all = fmt::format("{:.4f}", loss[0]), wrong;
  for (std::size_t s = 1; s < loss.size(); ++s) {
    const double change = loss[s] - loss[s - 1];
    const char* sign = change < 0 ? ">" : change > 0 ? "<" : change == 0 ? "=" : "?";
    all += fmt::format(" {} {:.4f}", sign, loss[s]);
    if (s == 1 || change > finding.figure) finding.figure = change;
    if (!(change < 0)) wrong += fmt::format("{}{} to {}", wrong.empty() ? "" : ", ", s - 1, s);
  }
  finding.found =
      loss.size() > 8 ? fmt::format("{:.4f} ... {:.4f}", loss.front(), loss.back()) : all;
  if (wrong.empty()) return finding;
  finding.grade = Grade::failure;
  finding.found += fmt::format("; it does not fall from step {}", wrong);
  const bool finite =
      std::all_of(loss.begin(), loss.end(), [](double value) { return std::isfinite(value); });
  finding.advice = finite ? raise_reward(deck) : stabilize(deck);
  return finding;
}

Finding refinement(const History& history, const LastEvaluation& last, const deck::Deck& deck) {
  const std::vector<double>& range = deck.objective.refinement_range;
  Finding finding = expecting("refinement", range_text(range));
  if (!last.missing.empty())
    return missing(finding, last.missing, missing_step_advice(history, deck));
  finding.figure = refinement_of(last);
  if (!std::isfinite(finding.figure))
    return missing(finding,
                   fmt::format("undefined: the first loss is {:.4f}, the last {:.4f}",
                               last.losses.front(), last.losses.back()),
                   stabilize(deck));
  finding.found = fmt::format("{:.3f}", finding.figure);
  if (finding.figure < range[0]) {
    finding.grade = Grade::failure;
    finding.advice = fmt::format("{}, or {}", raise_reward(deck), lengthen(deck));
  } else if (finding.figure > range[1]) {
    finding.grade = Grade::remark;
    finding.advice = fmt::format(
        "check with &evaluation compare_with that the last answer is good, rather than the first "
        "bad; if "
        "it is not, {}",
        lower_reward(deck));
  }
  return finding;
}

Finding finite_values(const History& history, const deck::Deck& deck) {
  Finding finding = expecting("finite values", "each loss and gradient norm, no step skipped");
  for (const char* name : {"train/loss", "train/grad_norm", "val/loss"})
    if (entries_of(history, name).empty())
      return missing(
          finding, fmt::format("no {}", name),
          std::string_view(name).starts_with("val") ? evaluate_more(deck) : log_more(deck));
  std::size_t count = 0;
  double first = std::numeric_limits<double>::infinity();
  std::string first_name;
  for (const auto& [name, steps] : history.not_finite) {
    if (!name.starts_with("train/loss") && !name.starts_with("val/loss") &&
        name != "train/grad_norm")
      continue;
    count += steps.size();
    if (steps.front() < first) first = steps.front(), first_name = name;
  }
  const auto skipped = entries_of(history, "train/skipped");  // includes steps not logged
  const double skips = skipped.empty() ? 0 : skipped.back().value;
  finding.figure = std::max(double(count), skips);
  finding.found = "all";
  if (count == 0 && skips == 0) return finding;
  finding.grade = Grade::failure;
  finding.found =
      count == 0 ? ""
                 : fmt::format("{} not finite, the first {} at step {}", count, first_name, first);
  if (skips > 0)
    finding.found +=
        fmt::format("{}{:.0f} step{} skipped", count ? "; " : "", skips, skips == 1 ? "" : "s");
  finding.advice = stabilize(deck);
  return finding;
}

std::string too_few(const std::vector<Entry>& entries, const std::string& name,
                    const deck::Deck& deck) {
  return fmt::format("{} of {} after the warmup of {} steps, {} needed",
                     entries.empty() ? "none" : fmt::format("only {}", entries.size()), name,
                     deck.optimizer.warmup_steps, verdict_bars::min_logged);
}

Finding median_norm(const History& history, const LastEvaluation& last, const deck::Deck& deck) {
  const std::vector<double>& range = deck.objective.norm_range;
  Finding finding = expecting("gradient norm", range_text(range));
  const auto norms = settled_entries(history, "train/grad_norm", deck);
  if (norms.size() < verdict_bars::min_logged)
    return missing(finding, too_few(norms, "train/grad_norm", deck), log_more(deck));
  finding.figure = median(values_of(norms));
  finding.found = fmt::format("median {:.3g} of {}", finding.figure, norms.size());
  if (finding.figure >= range[0] && finding.figure <= range[1]) return finding;
  finding.grade = Grade::warning;
  // The reward scales the gradient, but a run that refines too little still needs it.
  const bool spare = !(refinement_of(last) < deck.objective.refinement_range[0]);
  finding.advice = finding.figure < range[0] ? raise_reward(deck)
                   : spare                   ? lower_reward(deck)
                                             : lower_rate(deck);
  return finding;
}

Finding largest_norm(const History& history, const deck::Deck& deck) {
  const double limit = deck.objective.norm_limit;
  Finding finding = expecting("largest gradient norm", fmt::format("at most {:g}", limit));
  auto norms = entries_of(history, "train/grad_norm");
  std::erase_if(norms, [](const Entry& entry) { return !std::isfinite(entry.value); });
  if (norms.empty()) return missing(finding, "no finite train/grad_norm", log_more(deck));
  const auto largest = std::max_element(
      norms.begin(), norms.end(), [](const Entry& a, const Entry& b) { return a.value < b.value; });
  finding.figure = largest->value;
  finding.found = fmt::format("{:.3g} at step {}", largest->value, largest->step);
  const auto above = std::count_if(norms.begin(), norms.end(),
                                   [&](const Entry& entry) { return entry.value > limit; });
  if (above == 0) return finding;
  finding.grade = Grade::warning;
  finding.found += fmt::format("; {} of {} above", above, norms.size());
  finding.advice = lower_rate(deck);
  return finding;
}

Finding smoothness(const History& history, const deck::Deck& deck) {
  namespace bars = verdict_bars;
  Finding finding = expecting("smoothness", fmt::format("rise at most {:g}, jitter at most {:g}",
                                                        bars::rise_warning, bars::jitter_warning));
  Stability worst;
  std::string where;
  for (std::size_t s = 0; s < steps_of(deck); ++s) {
    const std::string name = step_name("train", s);
    const auto losses = settled_entries(history, name, deck);
    if (losses.size() < bars::min_logged)
      return missing(finding, too_few(losses, name, deck), log_more(deck));
    const Stability one = stability_of(values_of(losses));
    if (one.rise > worst.rise) {
      worst.rise = one.rise;
      where = fmt::format(" ({} at step {})", name, losses[one.at].step);
    }
    worst.jitter = std::max(worst.jitter, one.jitter);
  }
  finding.figure = worst.rise;
  finding.found =
      fmt::format("largest rise {:.3f}{}, jitter {:.3f}", worst.rise, where, worst.jitter);
  if (worst.rise > bars::rise_failure || worst.jitter > bars::jitter_failure)
    finding.grade = Grade::failure;
  else if (worst.rise > bars::rise_warning || worst.jitter > bars::jitter_warning)
    finding.grade = Grade::warning;
  if (worst.rise > bars::rise_warning)
    finding.advice = lower_rate(deck);
  else if (worst.jitter > bars::jitter_warning)
    finding.advice = fmt::format("raise &batch global above {}", deck.batch.global);
  return finding;
}

Finding progress(const History& history, const deck::Deck& deck) {
  Finding finding = expecting("progress", "last val/loss below the first");
  const auto all = entries_of(history, "val/loss");
  if (all.empty()) return missing(finding, "no val/loss", evaluate_more(deck));
  const Entry first = all.front(), last = all.back();
  if (first.step == last.step)
    return missing(finding, fmt::format("only the evaluation of step {}", last.step),
                   evaluate_more(deck));
  finding.figure = last.value - first.value;
  finding.found = fmt::format("{:.4f} at step {}, {:.4f} at step {}", first.value, first.step,
                              last.value, last.step);
  if (last.value < first.value) return finding;
  finding.grade = Grade::failure;
  finding.advice = std::isfinite(finding.figure) ? lower_rate(deck) : stabilize(deck);
  return finding;
}

}  // namespace

Verdict make_verdict(const History& history, const deck::Deck& deck) {
  const LastEvaluation last = last_evaluation(history, deck);
  Verdict verdict;
  verdict.preset = deck.objective.preset;
  verdict.step = std::int64_t(last.step);
  if (last.missing.empty()) verdict.loss = last.losses.back();
  verdict.findings = {order(history, last, deck),   refinement(history, last, deck),
                      finite_values(history, deck), median_norm(history, last, deck),
                      largest_norm(history, deck),  smoothness(history, deck),
                      progress(history, deck)};
  return verdict;
}

}  // namespace tern::report::detail
