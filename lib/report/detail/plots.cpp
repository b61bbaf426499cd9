#include "report/detail/plots.hpp"

#include <algorithm>
#include <set>

#include "report/detail/figures.hpp"
#include "report/detail/titles.hpp"

namespace tern::report::detail {
namespace {

using Name = std::string_view;

struct Rule {
  Plot plot;  // without names
  bool (*takes)(Name name);
};

// Plots whose title is the metric's own.
Rule single(Section section, const char* file, const char* metric, const char* unit, double scale,
            Range range, bool (*takes)(Name)) {
  return {{file, title_of(metric), unit, scale, range, section}, takes};
}

std::vector<Rule> loss_rules() {
  constexpr const char* nats = "nats per token";
  return {
      {{"loss", "Loss per token", nats, 1, Range::wide, Section::main},
       [](Name n) { return n == "train/loss_per_token" || n == "train/loss" || n == "val/loss"; }},
      {{"exact_match", "Problems solved", "%", 100, Range::from_zero, Section::main},
       [](Name n) { return n == "val/exact_match" || n == "val/well_formed"; }},
      single(Section::parts, "objective", "train/loss", "weighted sum", 1, Range::wide,
             [](Name n) { return n == "train/loss"; }),
      {{"loss_steps", "Training loss of each answer", nats, 1, Range::wide, Section::parts},
       [](Name n) { return n.starts_with("train/loss_step_"); }},
      {{"val_loss_steps", "Validation loss of each answer", nats, 1, Range::wide, Section::parts},
       [](Name n) { return n.starts_with("val/loss_step_"); }},
      {{"refinement", "Refinement from first to last answer", "% of the first loss", 100,
        Range::values, Section::parts},
       [](Name n) { return n == "train/refinement" || n == "val/refinement"; }},
      {{"loss_parts", "Loss by part", nats, 1, Range::wide, Section::parts},
       [](Name n) {
         return (n.starts_with("train/loss_") && n != "train/loss_scale") ||
                n.starts_with("val/loss_");
       }},
      single(Section::parts, "perplexity", "val/perplexity", "", 1, Range::wide,
             [](Name n) { return n == "val/perplexity"; }),
      single(Section::parts, "val_accuracy", "val/accuracy", "%", 100, Range::from_zero,
             [](Name n) { return n == "val/accuracy"; }),
      {{"accuracy_t",
        "Predicted tokens that are right, at the last evaluation",
        "%",
        100,
        Range::from_zero,
        Section::parts,
        {},
        true},
       [](Name n) { return n.starts_with("val/accuracy_t"); }}};
}

std::vector<Rule> speed_rules() {
  const auto speed = Section::speed;
  return {{{"throughput", "Throughput", "tokens/s", 1, Range::from_zero, speed},
           [](Name n) { return n == "train/throughput"; }},
          single(speed, "train_samples_per_second", "train/samples_per_second", "samples/s", 1,
                 Range::from_zero, [](Name n) { return n == "train/samples_per_second"; }),
          single(speed, "mfu", "train/mfu", "%", 100, Range::from_zero,
                 [](Name n) { return n == "train/mfu"; }),
          single(speed, "data_wait_share", "data/wait_share", "%", 100, Range::from_zero,
                 [](Name n) { return n == "data/wait_share"; }),
          single(speed, "slowest_rank", "system/slowest_rank_excess", "%", 100, Range::from_zero,
                 [](Name n) { return n == "system/slowest_rank_excess"; })};
}

std::vector<Rule> machine_rules() {
  const auto machine = Section::machine;
  return {{{"memory", "GPU memory in use, largest rank", "GiB", 0x1p-30, Range::from_zero, machine},
           [](Name n) { return n == "system/gpu_memory_allocated"; }},
          {{"host_memory", "Host memory in use, largest rank", "GiB", 0x1p-30, Range::from_zero,
            machine},
           [](Name n) { return n == "system/process_memory"; }},
          single(machine, "system_process_cores", "system/process_cores", "cores", 1,
                 Range::from_zero, [](Name n) { return n == "system/process_cores"; }),
          {{"gpu_utilization", "GPU utilization", "%", 100, Range::from_zero, machine},
           [](Name n) { return n.starts_with("system/gpu_utilization"); }},
          {{"gpu_power", "GPU power", "W", 1, Range::from_zero, machine},
           [](Name n) { return n.starts_with("system/gpu_power"); }},
          {{"gpu_temperature", "GPU temperature", "C", 1, Range::values, machine},
           [](Name n) { return n.starts_with("system/gpu_temperature"); }}};
}

std::vector<Rule> training_rules() {
  const auto training = Section::training;
  return {single(training, "grad_norm", "train/grad_norm", "", 1, Range::wide,
                 [](Name n) { return n == "train/grad_norm"; }),
          single(training, "lr", "train/lr", "", 1, Range::from_zero,
                 [](Name n) { return n == "train/lr"; }),
          {{"clip", "Masking-rate range", "% of the tokens", 100, Range::from_zero, training},
           [](Name n) { return n.starts_with("train/clip_"); }},
          single(training, "train_learned_tokens", "train/learned_tokens", "%", 100, Range::values,
                 [](Name n) { return n == "train/learned_tokens"; }),
          single(training, "data_fill", "data/fill", "%", 100, Range::values,
                 [](Name n) { return n == "data/fill"; })};
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list = loss_rules();
    for (const auto& more : {speed_rules(), machine_rules(), training_rules()})
      list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
  return all;
}

// train/wait_3 -> train/wait
std::string family(std::string name) {
  const auto last = name.find_last_not_of("0123456789");
  if (last + 1 < name.size() && last != std::string::npos && name[last] == '_') name.resize(last);
  return name;
}

/// No constants, no straight line of a count, no extremes and limits of what has a plot.
bool worth_a_plot(const std::string& name, const Curve& curve) {
  const auto [low, high] = std::minmax_element(curve.value.begin(), curve.value.end());
  for (const char* other : {"system/slowest_rank", "system/gpu_hottest_rank", "system/seconds",
                            "train/tokens", "system/gpu_memory_peak", "system/process_memory_peak"})
    if (name == other) return false;
  return *low < *high && !is_bound(name);
}

/// Rules of quantities that are mostly constant, or next to zero.
bool worth_its_rule(const std::string& name, const Curve& curve) {
  const auto [low, high] = std::minmax_element(curve.value.begin(), curve.value.end());
  if (name == "data/wait_share") return *high > 0.01;
  if (name == "data/fill" || name == "val/perplexity") return *low < *high;
  return true;
}

std::string file_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

}  // namespace

const char* section_title(Section section) {
  switch (section) {
    case Section::main:
      return "Loss and score";
    case Section::parts:
      return "Loss by part, accuracy";
    case Section::speed:
      return "Speed";
    case Section::machine:
      return "Machine";
    case Section::training:
      return "Optimizer and data";
    case Section::other:
      return "Other metrics";
  }
  return "";
}

std::vector<Plot> choose_plots(const History& history) {
  std::vector<Plot> plots;
  std::set<const Curve*> taken;
  // Weighted sum of several parts: not what validation measures.
  const bool weighted = history.curves.contains("train/loss_per_token");
  for (const Rule& rule : rules()) {
    Plot plot = rule.plot;
    for (const auto& [name, curve] : plot.profile ? history.profiles : history.curves) {
      if (weighted && plot.file == "loss" && name == "train/loss") continue;
      if (rule.takes(name) && taken.insert(&curve).second && worth_its_rule(name, curve))
        plot.names.push_back(name);
    }
    if (!plot.names.empty()) plots.push_back(plot);
  }
  for (const auto& [name, curve] : history.curves) {
    if (taken.contains(&curve) || !worth_a_plot(name, curve)) continue;
    const std::string stem = family(name), file = file_name(stem);
    if (plots.empty() || plots.back().file != file)
      plots.push_back({file, title_of(stem), "", 1, Range::values, Section::other});
    plots.back().names.push_back(name);
  }
  return plots;
}

}  // namespace tern::report::detail
