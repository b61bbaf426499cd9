/// Plots with their data: what gnuplot draws and the page's script shows.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "report/detail/history.hpp"
#include "report/detail/plots.hpp"

namespace tern::report::detail {

/// As drawn: scaled, with at most a thousand points.
struct Line {
  std::string label;      // empty: none in the legend
  std::size_t run = 0;    // of those compared
  std::size_t color = 0;  // into the palette
  bool faint = false;     // a noisy curve, under its running mean
  bool dots = false;      // few points
  Curve points;
  std::vector<double> low, high;  // interval of each point, or empty
};

struct Axis {
  double low, high;
  bool logarithmic;
};

struct Figure {
  Plot plot;
  std::vector<Line> lines;
  Axis axis;
};

/// A run to be drawn next to others.
struct NamedHistory {
  std::string name;
  History history;
};

/// One for each plot, its curves labeled by what they are.
std::vector<Figure> figures_of(const History& history, const std::vector<Plot>& plots);
/// One for each metric, its curves labeled by their runs. Intervals are left out.
std::vector<Figure> compared_figures(const std::vector<NamedHistory>& runs);

/// Whether a metric is the bound of another one's interval: NAME_low, NAME_high.
bool is_bound(std::string_view metric);

/// Range of linear axes: at least `least_span` of the largest magnitude, so that noise looks small.
constexpr double least_span = 0.1;
Axis axis_of(const Plot& plot, const std::vector<Line>& lines);

}  // namespace tern::report::detail
