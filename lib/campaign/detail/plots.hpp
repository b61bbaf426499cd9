/// The curves of a run as gnuplot pictures.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "campaign/detail/history.hpp"
#include "campaign/detail/process.hpp"

namespace tern::campaign::detail {

/// How far the y axis goes: as the values; from zero; or as the values but for those of the first
/// 2% of the steps, whose high losses would flatten the rest.
enum class Range { values, from_zero, without_start };

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

}  // namespace tern::campaign::detail
