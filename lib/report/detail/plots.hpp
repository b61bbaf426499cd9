/// Curves of a run as gnuplot pictures.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "report/detail/history.hpp"
#include "report/detail/process.hpp"

namespace tern::report::detail {

/// Range of the y axis: that of the values; from zero; or logarithmic where small values would
/// otherwise lie on the axis.
enum class Range { values, from_zero, wide };

struct Plot {
  std::string file;  // name without .svg
  std::string title, unit;
  double scale = 1;  // from the metric's unit to `unit`
  Range range = Range::values;
  std::vector<std::string> names;  // keys of the history's curves, or
  bool profile = false;            // keys of its profiles
};

/// Plots of a history: losses first, then the usual metrics, then all others; members of a numbered
/// family (loss_step_0, loss_step_1, ...) share a plot.
std::vector<Plot> choose_plots(const History& history);

/// gnuplot program that writes PLOT.svg for each plot into gnuplot's current directory.
std::string gnuplot_program(const History& history, const std::vector<Plot>& plots);

/// Draws all plots in `folder`, which exists, within `limit`; gnuplot's output goes to
/// folder/gnuplot.txt.
Ending draw(const History& history, const std::vector<Plot>& plots,
            const std::filesystem::path& folder, std::chrono::seconds limit);

}  // namespace tern::report::detail
