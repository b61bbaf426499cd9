#include "report/detail/titles.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace tern::report::detail {
namespace {

using Titles = std::map<std::string_view, std::string_view>;

const Titles& known_titles() {
  static const Titles titles = {
      {"data/fill", "Positions filled by samples"},
      {"data/wait_share", "Time waited for data"},
      {"samples_hash", "Hash of the step's samples"},
      {"samples_hash_total", "Hash of all samples so far"},
      {"system/gpu_hottest_rank", "Rank of the hottest GPU"},
      {"system/gpu_memory_allocated", "GPU memory in use, largest rank, bytes"},
      {"system/gpu_memory_peak", "Peak GPU memory, largest rank, bytes"},
      {"system/gpu_power", "GPU power, mean, W"},
      {"system/gpu_power_max", "GPU power, largest, W"},
      {"system/gpu_temperature", "GPU temperature, mean, C"},
      {"system/gpu_temperature_max", "GPU temperature, largest, C"},
      {"system/gpu_utilization", "GPU utilization, mean"},
      {"system/gpu_utilization_min", "GPU utilization, least used GPU"},
      {"system/process_cores", "CPU cores in use per rank"},
      {"system/process_memory", "Host memory in use, largest rank, bytes"},
      {"system/process_memory_peak", "Peak host memory, largest rank, bytes"},
      {"system/seconds", "Seconds of the run, all starts together"},
      {"system/slowest_rank", "Slowest rank"},
      {"system/slowest_rank_excess", "Slowest rank: compute time above the median of the others"},
      {"train/grad_norm", "Gradient norm before clipping"},
      {"train/learned_tokens", "Tokens that count in the loss"},
      {"train/loss", "Training objective"},
      {"train/loss_per_token", "Training loss per token"},
      {"train/lr", "Learning rate"},
      {"train/mfu", "Model FLOP utilization"},
      {"train/router_loss", "Load balance loss of the experts"},
      {"train/samples_per_second", "Samples per second"},
      {"train/skipped", "Steps skipped"},
      {"train/loss_scale", "Loss scale"},
      {"train/overflowed", "Steps skipped by loss scaling"},
      {"train/throughput", "Tokens per second"},
      {"train/tokens", "Tokens trained on"},
      {"val/accuracy", "Predicted tokens that are right"},
      {"val/exact_match", "Problems solved"},
      {"val/exact_match_high", "Problems solved, upper end of the 95% interval"},
      {"val/exact_match_low", "Problems solved, lower end of the 95% interval"},
      {"val/loss", "Validation loss"},
      {"val/perplexity", "Validation perplexity"},
      {"val/well_formed", "Well-formed answers"}};
  return titles;
}

std::string_view side_of(std::string_view metric) {
  return metric.starts_with("train/") ? "training" : metric.starts_with("val/") ? "validation" : "";
}

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// "step_2" -> "answer 3": counted from one, since a step is the optimizer's.
std::string without_steps(std::string_view name) {
  constexpr std::string_view step = "step_";
  const bool one_digit = name.size() == step.size() + 1 && name.back() >= '0' && name.back() < '9';
  if (!name.starts_with(step) || !one_digit) return spaced(name);
  return std::string("answer ") + static_cast<char>(name.back() + 1);
}

std::string join(const std::string& what, std::string_view side) {
  if (what.empty() || side.empty()) return what + std::string(side);
  return what + ", " + std::string(side);
}

}  // namespace

std::string title_of(std::string_view metric) {
  if (const auto known = known_titles().find(metric); known != known_titles().end())
    return std::string(known->second);
  const std::string_view side = side_of(metric);
  std::string_view name = side.empty() ? metric : metric.substr(metric.find('/') + 1);
  std::string text;
  if (name.starts_with("clip_")) {
    text = "Masking-rate range, " + spaced(name.substr(5));
  } else if (name.starts_with("loss_")) {
    name.remove_prefix(5);
    text =
        "Loss of " + (name.starts_with("step_") ? "" : std::string("the ")) + without_steps(name);
  } else {
    text = spaced(name);
    if (!text.empty())
      text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }
  return join(text, side);
}

std::string legend_of(std::string_view metric) {
  std::string_view name = metric.substr(metric.find('/') + 1);
  if (name == "exact_match") return "solved";
  if (name == "well_formed") return "well-formed";
  if (name.starts_with("clip_")) return spaced(name.substr(5));
  for (const std::string_view stem : {"loss_per_token", "loss", "accuracy_t", "refinement"})
    if (name.starts_with(stem)) {
      name.remove_prefix(stem.size());
      if (name.starts_with('_')) name.remove_prefix(1);
      return join(without_steps(name), stem == "accuracy_t" ? "" : side_of(metric));
    }
  return join(spaced(name), side_of(metric));
}

}  // namespace tern::report::detail
