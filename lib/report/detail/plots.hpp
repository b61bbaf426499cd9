/// Which curves of a run share a plot, and how its y axis is scaled.
#pragma once
#include <string>
#include <vector>

#include "report/detail/history.hpp"

namespace tern::report::detail {

/// Range of the y axis: that of the values; from zero; or logarithmic where small values would
/// otherwise lie on the axis.
enum class Range { values, from_zero, wide };

/// Part of the page. Only the first one is not folded.
enum class Section { main, parts, speed, machine, training, other };
constexpr Section sections[] = {Section::main,    Section::parts,    Section::speed,
                                Section::machine, Section::training, Section::other};
const char* section_title(Section section);

struct Plot {
  std::string file;  // name without .svg
  std::string title, unit;
  double scale = 1;  // from the metric's unit to `unit`
  Range range = Range::values;
  Section section = Section::other;
  std::vector<std::string> names = {};  // keys of the history's curves, or
  bool profile = false;                 // keys of its profiles
};

/// Plots of a history: losses and scores first, then the usual metrics, then all others; members of
/// a numbered family (loss_step_0, loss_step_1, ...) share a plot.
std::vector<Plot> choose_plots(const History& history);

}  // namespace tern::report::detail
