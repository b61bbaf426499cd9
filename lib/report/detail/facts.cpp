#include "report/detail/facts.hpp"

#include <fmt/format.h>

#include <cmath>

#include "report/detail/cards.hpp"
#include "words/numbers.hpp"

namespace tern::report::detail {
namespace {

/// Lowest value of a curve; step 0, before training, does not count.
std::string best_of(const Curve& curve) {
  const auto best = lowest(curve);
  if (!best) return {};
  return fmt::format("validation loss {:.4f} at step {:.0f}", best->value, best->step);
}

std::string in_words(double tokens) {
  if (tokens < 1e6) return fmt::format("{:.1f} thousand", tokens / 1e3);
  if (tokens < 1e9) return fmt::format("{:.1f} million", tokens / 1e6);
  return fmt::format("{:.2f} billion", tokens / 1e9);
}

}  // namespace

std::string rate_text(double rate) {
  return std::abs(rate) < 1000 ? grouped(std::llround(rate)) : rounded(rate);
}

Facts facts_of(const std::optional<job::RunRecord>& record, const History& history) {
  Facts facts;
  const auto add = [&](const char* name, std::string text) {
    if (!text.empty()) facts.emplace_back(name, std::move(text));
  };
  const auto curve = [&](const char* name) {
    const auto found = history.curves.find(name);
    return found == history.curves.end() ? nullptr : &found->second;
  };
  if (record) {
    add("Status",
        record->ending(history.last_step) + (record->ended.empty() ? "" : ", " + record->ended));
    add("Model", record->model);
    add("Precision", record->precision);
    add("Where", record->place() + ", on " + record->host);
  }
  std::string steps = fmt::format("{}", history.last_step);
  if (record && record->steps > 0) steps += fmt::format(" of {}", record->steps);
  if (record && !record->batch.empty()) steps += ", " + record->batch;
  add("Steps", steps);
  if (const Curve* tokens = curve("train/tokens")) add("Tokens", in_words(tokens->value.back()));
  if (const Curve* loss = curve("val/loss")) add("Best", best_of(*loss));
  if (record) {
    add("Started", record->started);
    add("Program", fmt::format("{}, commit {}", record->program, record->commit));
  }
  return facts;
}

}  // namespace tern::report::detail
