#include "report/detail/plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/files.hpp"
#include "report/detail/titles.hpp"

namespace tern::report::detail {
namespace {

constexpr std::size_t points_per_curve = 2000;
constexpr double wide_ratio = 5;         // largest to smallest value, for a logarithmic axis
constexpr std::size_t noisy_from = 100;  // points; longer training curves get a running mean
// Okabe and Ito's colour-blind-safe palette; page.cpp brightens it on dark backgrounds.
constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73",
                                   "#cc79a7", "#e69f00", "#56b4e9"};

struct Rule {
  Plot plot;  // without names
  bool (*takes)(std::string_view name);
};

const std::vector<Rule>& rules() {
  using Name = std::string_view;
  constexpr bool of_profiles = true;
  static const std::vector<Rule> all = {
      {{"loss", "Loss per token", "nats per token", 1, Range::wide, {}},
       [](Name n) { return n == "train/loss_per_token" || n == "train/loss" || n == "val/loss"; }},
      {{"objective", "Training loss, as it is minimized", "weighted sum", 1, Range::wide, {}},
       [](Name n) { return n == "train/loss"; }},
      {{"loss_steps", "Training loss of each answer", "nats per token", 1, Range::wide, {}},
       [](Name n) { return n.starts_with("train/loss_step_"); }},
      {{"val_loss_steps", "Validation loss of each answer", "nats per token", 1, Range::wide, {}},
       [](Name n) { return n.starts_with("val/loss_step_"); }},
      {{"refinement",
        "Refinement from first to last answer",
        "fraction of the first loss",
        1,
        Range::values,
        {}},
       [](Name n) { return n == "train/refinement" || n == "val/refinement"; }},
      {{"loss_parts", "Loss by part", "nats per token", 1, Range::wide, {}},
       [](Name n) { return n.starts_with("train/loss_") || n.starts_with("val/loss_"); }},
      {{"perplexity", "Perplexity", "", 1, Range::wide, {}},
       [](Name n) { return n == "val/perplexity"; }},
      {{"exact_match", "Problems solved", "fraction", 1, Range::from_zero, {}},
       [](Name n) { return n == "val/exact_match" || n == "val/well_formed"; }},
      {{"throughput", "Throughput", "tokens/s", 1, Range::from_zero, {}},
       [](Name n) { return n == "train/throughput"; }},
      {{"grad_norm", "Gradient norm before clipping", "", 1, Range::wide, {}},
       [](Name n) { return n == "train/grad_norm"; }},
      {{"lr", "Learning rate", "", 1, Range::from_zero, {}},
       [](Name n) { return n == "train/lr"; }},
      {{"memory", "Memory", "GiB", 0x1p-30, Range::from_zero, {}},
       [](Name n) { return n.starts_with("system/") && n.find("memory") != Name::npos; }},
      {{"gpu_utilization", "Fraction of the time GPUs work", "", 1, Range::from_zero, {}},
       [](Name n) { return n.starts_with("system/gpu_utilization"); }},
      {{"gpu_power", "Power per GPU", "W", 1, Range::from_zero, {}},
       [](Name n) { return n.starts_with("system/gpu_power"); }},
      {{"gpu_temperature", "Temperature of GPUs", "C", 1, Range::values, {}},
       [](Name n) { return n.starts_with("system/gpu_temperature"); }},
      {{"slowest_rank",
        "Compute time of the slowest rank beyond the others' median",
        "fraction",
        1,
        Range::from_zero,
        {}},
       [](Name n) { return n == "system/slowest_rank_excess"; }},
      {{"mfu", "Model FLOP utilization", "", 1, Range::from_zero, {}},
       [](Name n) { return n == "train/mfu"; }},
      {{"clip",
        "Times that noise is drawn from",
        "fraction of masked tokens",
        1,
        Range::from_zero,
        {}},
       [](Name n) { return n.starts_with("train/clip_"); }},
      {{"accuracy_t",
        "Masked tokens predicted, at the last evaluation",
        "fraction",
        1,
        Range::from_zero,
        {},
        of_profiles},
       [](Name n) { return n.starts_with("val/accuracy_t"); }}};
  return all;
}

// train/wait_3 -> train/wait
std::string family(std::string name) {
  const auto last = name.find_last_not_of("0123456789");
  if (last + 1 < name.size() && last != std::string::npos && name[last] == '_') name.resize(last);
  return name;
}

// Metrics without a rule: no constants, no straight line of a count, no fractions near zero.
bool worth_a_plot(const std::string& name, const Curve& curve) {
  const auto [low, high] = std::minmax_element(curve.value.begin(), curve.value.end());
  for (const char* other : {"system/slowest_rank", "system/gpu_hottest_rank", "system/seconds"})
    if (name == other) return false;
  return *low < *high && name != "train/tokens" && (name != "data/wait_share" || *high > 0.01);
}

// Without GPUs the memory of the device is that of the process.
bool repeats_process(const History& history, const std::string& name) {
  for (const auto& [of_device, of_process] :
       {std::pair{"system/gpu_memory_allocated", "system/process_memory"},
        std::pair{"system/gpu_memory_peak", "system/process_memory_peak"}}) {
    if (name != of_device) continue;
    const auto process = history.curves.find(of_process);
    return process != history.curves.end() &&
           process->second.value == history.curves.at(name).value;
  }
  return false;
}

std::string file_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

/// A string of gnuplot, on one line.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    if (c == '\'') out += c;
  }
  return "'" + out + "'";
}

std::string data_block(const std::string& name, const Curve& curve, double scale) {
  std::string out = fmt::format("{} << END\n", name);
  for (std::size_t i = 0; i < curve.step.size(); ++i)
    out += fmt::format("{:.10g} {:.8g}\n", curve.step[i], curve.value[i] * scale);
  return out + "END\n";
}

// A curve as one or two gnuplot lines: noisy curves are faint, with a running mean on top.
struct Drawn {
  std::string data, lines;
};
Drawn draw_curve(const Curve& curve, const std::string& name, const std::string& title,
                 double scale, std::size_t colour) {
  const char* rgb = colours[colour % std::size(colours)];
  const std::size_t n = curve.value.size();
  const std::string raw = "$" + name, mean = "$" + name + "_mean";
  Drawn out{data_block(raw, downsampled(curve, points_per_curve), scale), {}};
  if (n <= noisy_from) {
    out.lines = fmt::format("{} with linespoints lc rgb '{}' lw 1.6 pt 7 ps {} title {}", raw, rgb,
                            n > 40 ? 0.25 : 0.45, title);
    return out;
  }
  out.data += data_block(mean, downsampled(smoothed(curve, n / 50), points_per_curve), scale);
  out.lines = fmt::format(
      "{} with lines lc rgb '#b0{}' lw 0.8 notitle, {} with lines lc rgb '{}' lw 1.8 title {}", raw,
      rgb + 1, mean, rgb, title);
  return out;
}

const Curve& curve_of(const History& history, const Plot& plot, const std::string& name) {
  return plot.profile ? history.profiles.at(name) : history.curves.at(name);
}

/// gnuplot's logarithmic axis, with tics at 1, 2, 5, 10, ... over few decades.
std::string logarithmic(double low, double high) {
  std::string tics;
  const double decades = std::log10(high / low);
  for (int power = int(std::floor(std::log10(low))); power <= int(std::ceil(std::log10(high)));
       ++power)
    for (const int digit : {1, 2, 5})
      if (digit == 1 || decades < 2.5)
        tics += fmt::format("{}{}e{}", tics.empty() ? "" : ", ", digit, power);
  return fmt::format("set logscale y\nset ytics ({})\nset yrange [{:.3g}:{:.3g}]\n", tics,
                     low / 1.08, high * 1.08);
}

// gnuplot's y axis.
std::string axis_of(const History& history, const Plot& plot) {
  const std::string linear = "unset logscale y\nset ytics autofreq\nset yrange ";
  if (plot.range == Range::from_zero) return linear + "[0:*]\n";
  if (plot.range == Range::values) return linear + "[*:*]\n";
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const std::string& name : plot.names)
    for (const double value : curve_of(history, plot, name).value) {
      low = std::min(low, value * plot.scale);
      high = std::max(high, value * plot.scale);
    }
  const bool wide = low > 0 && high > wide_ratio * low;
  return wide ? logarithmic(low, high) : linear + "[*:*]\n";
}

std::string program_of(const History& history, const Plot& plot, std::size_t number) {
  std::string data, lines;
  for (std::size_t i = 0; i < plot.names.size(); ++i) {
    const std::string& name = plot.names[i];
    const std::string title = plot.names.size() > 1 ? quoted(legend_of(name)) : "''";
    const Drawn one = draw_curve(curve_of(history, plot, name), fmt::format("p{}c{}", number, i),
                                 title, plot.scale, i);
    data += one.data;
    lines += (i ? ", " : "") + one.lines;
  }
  // Losses fall: the top right corner is free.
  const char* key = plot.range == Range::wide ? "inside top right vertical nobox"
                                              : "outside top center horizontal";
  // Small enough that text stays readable when a phone scales it down.
  return fmt::format(
      "{}set key {}\nset terminal svg size 480,310 dynamic noenhanced font 'sans-serif,13'\n"
      "set output '{}.svg'\nset xlabel '{}'\nset title {}\nset ylabel {}\n{}plot {}\n",
      data, key, plot.file, plot.profile ? "fraction of masked tokens, t" : "optimizer step",
      quoted(plot.title), quoted(plot.unit), axis_of(history, plot), lines);
}

constexpr const char* preamble = R"(set border 3 lc rgb '#000000' lw 0.8
set tics nomirror out scale 0.5
set grid back lc rgb '#bebebe' lw 0.6 dt 1
set key noenhanced samplen 1.6
set title font ',15' offset 0,-0.3
set format x '%.12g'
set format y '%g'
set xtics autofreq
set autoscale xfixmax
set xrange [0:*]
set rmargin 4
)";

}  // namespace

std::vector<Plot> choose_plots(const History& history) {
  std::vector<Plot> plots;
  std::set<const Curve*> taken;
  // Weighted sum of several parts: not what validation measures.
  const bool weighted = history.curves.contains("train/loss_per_token");
  for (const Rule& rule : rules()) {
    Plot plot = rule.plot;
    for (const auto& [name, curve] : plot.profile ? history.profiles : history.curves) {
      if (weighted && plot.file == "loss" && name == "train/loss") continue;
      if (rule.takes(name) && taken.insert(&curve).second && !repeats_process(history, name))
        plot.names.push_back(name);
    }
    if (!plot.names.empty()) plots.push_back(plot);
  }
  for (const auto& [name, curve] : history.curves) {
    if (taken.contains(&curve) || !worth_a_plot(name, curve)) continue;
    const std::string stem = family(name), file = file_name(stem);
    if (plots.empty() || plots.back().file != file)
      plots.push_back({file, title_of(stem), "", 1, Range::values, {}});
    plots.back().names.push_back(name);
  }
  return plots;
}

std::string gnuplot_program(const History& history, const std::vector<Plot>& plots) {
  std::string out = preamble;
  for (std::size_t i = 0; i < plots.size(); ++i) out += program_of(history, plots[i], i);
  return out;
}

Ending draw(const History& history, const std::vector<Plot>& plots,
            const std::filesystem::path& folder, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto run = [&](const std::vector<Plot>& drawn) {
    if (!replace_file(folder / "plots.gp", gnuplot_program(history, drawn))) return Ending::failed;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    return run_program({"gnuplot", "plots.gp"}, folder / "gnuplot.txt", left, folder);
  };
  const Ending all = run(plots);
  if (all != Ending::failed) return all;
  // gnuplot ends at the first value that it cannot draw: the other plots are made without it.
  for (const Plot& plot : plots)
    if (run({plot}) == Ending::timed_out) return Ending::timed_out;
  return Ending::failed;
}

}  // namespace tern::report::detail
