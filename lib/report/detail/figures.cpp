#include "report/detail/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/detail/titles.hpp"

namespace tern::report::detail {
namespace {

constexpr std::size_t points_per_line = 1000;
constexpr double wide_ratio = 5;         // largest to smallest value, for a logarithmic axis
constexpr std::size_t noisy_from = 100;  // points; longer curves get a running mean
constexpr std::size_t dots_up_to = 40;   // points

Curve scaled(Curve curve, double scale) {
  for (double& value : curve.value) value *= scale;
  return curve;
}

/// A curve as one line, or as two: noisy ones are faint, with a running mean on top.
void add_lines(std::vector<Line>& lines, const Curve& curve, Line like, double scale) {
  const std::size_t n = curve.value.size();
  like.dots = n <= dots_up_to;
  if (n > noisy_from) {
    Line faint = like;
    faint.label.clear();
    faint.faint = true;
    faint.points = scaled(downsampled(curve, points_per_line), scale);
    lines.push_back(std::move(faint));
    like.points = scaled(downsampled(smoothed(curve, n / 50), points_per_line), scale);
  } else {
    like.points = scaled(curve, scale);
  }
  lines.push_back(std::move(like));
}

/// The interval of each point of `line`, if the history has any; where it has none, of no width.
void add_interval(Line& line, const History& history, const std::string& name, double scale) {
  const auto low = history.curves.find(name + "_low"), high = history.curves.find(name + "_high");
  if (low == history.curves.end() || high == history.curves.end()) return;
  line.low = line.high = line.points.value;
  for (const auto& [bound, values] :
       {std::pair{&low->second, &line.low}, {&high->second, &line.high}})
    for (std::size_t i = 0; i < bound->step.size(); ++i) {
      const auto& steps = line.points.step;
      const auto at = std::lower_bound(steps.begin(), steps.end(), bound->step[i]);
      if (at != steps.end() && *at == bound->step[i])
        (*values)[static_cast<std::size_t>(at - steps.begin())] = scale * bound->value[i];
    }
}

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void take(const std::vector<double>& values) {
    for (const double value : values) low = std::min(low, value), high = std::max(high, value);
  }
};

}  // namespace

bool is_bound(std::string_view metric) { return metric.starts_with("val/exact_match_"); }

Axis axis_of(const Plot& plot, const std::vector<Line>& lines) {
  Extent extent;
  for (const Line& line : lines)
    for (const auto* values : {&line.points.value, &line.low, &line.high}) extent.take(*values);
  double low = extent.low, high = extent.high;
  if (plot.range == Range::wide && low > 0 && high > wide_ratio * low)
    return {low / 1.08, high * 1.08, true};
  if (plot.range == Range::from_zero) {
    high = high > 0 ? 1.06 * high : 1;
    if (plot.unit.starts_with("%") && extent.high <= 100) high = std::min(high, 103.0);
    return {std::min(low, 0.0), high, false};
  }
  const double magnitude = std::max(std::abs(low), std::abs(high));
  const double least = magnitude > 0 ? least_span * magnitude : 1;
  if (high - low < least) {
    const double middle = low + (high - low) / 2;
    low = middle - least / 2, high = middle + least / 2;
  }
  const double edge = 0.04 * (high - low);
  return {low - edge, high + edge, false};
}

std::vector<Figure> figures_of(const History& history, const std::vector<Plot>& plots) {
  std::vector<Figure> figures;
  for (const Plot& plot : plots) {
    std::vector<Line> lines;
    for (std::size_t i = 0; i < plot.names.size(); ++i) {
      const std::string& name = plot.names[i];
      Line like;
      if (plot.names.size() > 1) like.label = legend_of(name);
      like.color = i;
      add_lines(lines, plot.profile ? history.profiles.at(name) : history.curves.at(name), like,
                plot.scale);
      add_interval(lines.back(), history, name, plot.scale);
    }
    figures.push_back({plot, lines, axis_of(plot, lines)});
  }
  return figures;
}

std::vector<Figure> compared_figures(const std::vector<NamedHistory>& runs) {
  History all;  // names only: of which run a curve is does not matter
  for (const NamedHistory& run : runs) {
    all.curves.insert(run.history.curves.begin(), run.history.curves.end());
    all.profiles.insert(run.history.profiles.begin(), run.history.profiles.end());
  }
  std::vector<Figure> figures;
  for (const Plot& shared : choose_plots(all))
    for (const std::string& name : shared.names) {
      Plot plot = shared;
      plot.names = {name};
      if (shared.section == Section::main || shared.names.size() > 1) {
        plot.title = title_of(name);
        plot.file += fmt::format("_{}", figures.size());
      }
      std::vector<Line> lines;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const auto& curves = plot.profile ? runs[i].history.profiles : runs[i].history.curves;
        Line like;
        like.label = runs[i].name;
        like.run = like.color = i;
        if (const auto found = curves.find(name); found != curves.end())
          add_lines(lines, found->second, like, plot.scale);
      }
      figures.push_back({plot, lines, axis_of(plot, lines)});
    }
  return figures;
}

}  // namespace tern::report::detail
