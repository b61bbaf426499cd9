/// The curves of a run as gnuplot pictures.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "report/detail/history.hpp"
#include "report/detail/process.hpp"

namespace tern::report::detail {

/// The y axis: as far as the values go; from zero; or logarithmic where values differ so much that
/// the small ones would lie on the axis.
enum class Range { values, from_zero, wide };

struct Plot {
  std::string file;  // name without .svg
  std::string title, unit;
  double scale = 1;  // from the metric's unit to `unit`
  Range range = Range::values;
  std::vector<std::string> names;  // of the history's curves, or
  bool profile = false;            // of its profiles
};

/// Which plots a history gets: losses first, then the usual ones, then whatever else was logged,
/// the members of a numbered family (loss_step_0, loss_step_1, ...) together.
std::vector<Plot> choose_plots(const History& history);

/// The gnuplot program that writes PLOT.svg into the current directory of gnuplot for each plot.
std::string gnuplot_program(const History& history, const std::vector<Plot>& plots);

/// Draws all in `folder`, which exists. At most `limit`; gnuplot's words are in folder/gnuplot.txt.
Ending draw(const History& history, const std::vector<Plot>& plots,
            const std::filesystem::path& folder, std::chrono::seconds limit);

}  // namespace tern::report::detail
