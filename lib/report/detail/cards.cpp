#include "report/detail/cards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "deck/rules.hpp"
#include "report/detail/facts.hpp"
#include "report/detail/stability.hpp"
#include "words/numbers.hpp"

namespace tern::report::detail {
namespace {

constexpr std::size_t recent = 10;  // logged steps

const Curve* curve_of(const History& history, const char* name) {
  const auto found = history.curves.find(name);
  return found == history.curves.end() ? nullptr : &found->second;
}

std::optional<double> value_at(const History& history, const char* name, double step) {
  if (const Curve* curve = curve_of(history, name))
    for (std::size_t i = 0; i < curve->step.size(); ++i)
      if (curve->step[i] == step) return curve->value[i];
  return std::nullopt;
}

template <class Better>
std::optional<Best> best_of(const Curve& curve, Better better) {
  std::optional<Best> best;
  for (std::size_t i = 0; i < curve.step.size(); ++i)
    if (curve.step[i] > 0 && (!best || better(curve.value[i], best->value)))
      best = {curve.value[i], curve.step[i]};
  return best;
}

double recent_median(const Curve& curve) {
  const std::size_t n = std::min(recent, curve.value.size());
  return median({curve.value.end() - static_cast<std::ptrdiff_t>(n), curve.value.end()});
}

/// A number of steps, with thousands.
std::string whole(double steps) { return grouped(std::llround(steps)); }

std::string joined(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  return text;
}

Card status(const Headline& run) {
  const double last = static_cast<double>(run.history.last_step);
  std::string steps = "step " + whole(last);
  if (run.record && run.record->steps > 0) {
    const double all = static_cast<double>(run.record->steps);
    steps += fmt::format(" of {} ({:.0f}%)", whole(all), std::floor(100 * last / all));
  }
  return {"Status", run.state, steps};
}

std::optional<Card> score(const Headline& run) {
  const Curve* solved = curve_of(run.history, "val/exact_match");
  const auto best = solved ? highest(*solved) : std::nullopt;
  if (!best) return std::nullopt;
  const auto low = value_at(run.history, "val/exact_match_low", best->step);
  const auto high = value_at(run.history, "val/exact_match_high", best->step);
  std::string interval;
  if (low && high)
    interval = fmt::format("95% interval {:.1f} to {:.1f}%", 100 * *low, 100 * *high);
  const double last = solved->value.back();
  return Card{"Problems solved, best", fmt::format("{:.1f}%", 100 * best->value),
              joined({interval, "step " + whole(best->step),
                      last < best->value ? fmt::format("last {:.1f}%", 100 * last) : ""})};
}

std::optional<Card> loss(const Headline& run) {
  const Curve* of_training = curve_of(run.history, "train/loss_per_token");
  if (!of_training) of_training = curve_of(run.history, "train/loss");
  const std::string training =
      of_training ? fmt::format("training {:.4f}", recent_median(*of_training)) : "";
  const Curve* validation = curve_of(run.history, "val/loss");
  if (!validation) {
    if (!of_training) return std::nullopt;
    return Card{"Training loss", fmt::format("{:.4f}", recent_median(*of_training)), ""};
  }
  const auto best = lowest(*validation);
  const std::string at =
      best ? fmt::format("best {:.4f} at step {}", best->value, whole(best->step)) : "";
  return Card{"Validation loss", fmt::format("{:.4f}", validation->value.back()),
              joined({at, training})};
}

std::optional<Card> speed(const Headline& run) {
  const Curve* rate = curve_of(run.history, "train/throughput");
  if (!rate) return std::nullopt;
  const Curve* mfu = curve_of(run.history, "train/mfu");
  return Card{"Tokens per second", rate_text(recent_median(*rate)),
              mfu ? fmt::format("MFU {:.1f}%", 100 * recent_median(*mfu)) : "all ranks"};
}

/// Seconds of an unfinished run, at the mean pace since its start, evaluations included.
std::optional<double> seconds_left(const Headline& run, double seconds) {
  if (run.state != "running") return std::nullopt;
  if (run.deck && deck::timed(run.deck->campaign))
    return std::max(0.0, 3600 * run.deck->campaign.max_hours - seconds);
  const auto last = static_cast<double>(run.history.last_step);
  if (!run.record || run.record->steps <= 0 || last <= 0) return std::nullopt;
  return std::max(0.0, seconds / last * (static_cast<double>(run.record->steps) - last));
}

void add_time_and_cost(const Headline& run, std::vector<Card>& cards) {
  const Curve* clock = curve_of(run.history, "system/seconds");
  if (!clock) return;
  const double seconds = clock->value.back();
  const auto left = seconds_left(run, seconds);
  if (left)
    cards.push_back({"Time left", duration(*left), duration(seconds) + " so far"});
  else
    cards.push_back({"Time taken", duration(seconds), "all starts together"});
  const double price = run.deck ? run.deck->cost.dollars_per_gpu_hour : 0;
  if (price <= 0 || !run.record) return;
  const double hourly = price * run.record->ranks;
  std::string note = fmt::format("${:g} per GPU hour", price);
  if (left) note += fmt::format("; ${:.2f} in all", hourly * (seconds + *left) / 3600);
  cards.push_back(
      {left ? "Cost so far" : "Cost", fmt::format("${:.2f}", hourly * seconds / 3600), note});
}

std::optional<Card> memory(const Headline& run) {
  const auto size = [](const Curve& curve) {
    const double gib = *std::max_element(curve.value.begin(), curve.value.end()) * 0x1p-30;
    return gib < 1 ? fmt::format("{:.0f} MiB", 1024 * gib) : fmt::format("{:.1f} GiB", gib);
  };
  const Curve* gpu = curve_of(run.history, "system/gpu_memory_peak");
  const Curve* host = curve_of(run.history, "system/process_memory_peak");
  if (gpu)
    return Card{"GPU memory, peak", size(*gpu),
                joined({"largest rank", host ? "host " + size(*host) : ""})};
  if (!host) return std::nullopt;
  return Card{"Memory, peak", size(*host), "host, largest rank"};
}

}  // namespace

std::optional<Best> lowest(const Curve& curve) {
  return best_of(curve, [](double a, double b) { return a < b; });
}

std::optional<Best> highest(const Curve& curve) {
  return best_of(curve, [](double a, double b) { return a > b; });
}

std::vector<Card> cards_of(const Headline& run) {
  std::vector<Card> cards{status(run)};
  for (const auto& card : {score(run), loss(run), speed(run)})
    if (card) cards.push_back(*card);
  add_time_and_cost(run, cards);
  if (const auto card = memory(run)) cards.push_back(*card);
  return cards;
}

}  // namespace tern::report::detail
