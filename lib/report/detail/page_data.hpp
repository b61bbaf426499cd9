/// Figures as JSON for the page's script (lib/report/page/report.js).
#pragma once
#include <string>
#include <vector>

#include "report/detail/figures.hpp"

namespace tern::report::detail {

/// Fits in a <script> element: `<` is written as an escape.
///
///     {"plots": [{"file", "title", "unit", "x", "low", "high", "log", "lines": [...]}, ...],
///      "runs": [{"tokens": {"x": steps, "y": tokens}, "hours": {"x", "y"}}, ...]}
///
/// A line: {"label", "run", "color", "faint", "dots", "x", "y"}, with "low" and "high" of an
/// interval. "x" of a plot: the name of an axis other than the steps', or "".
std::string page_data(const std::vector<Figure>& figures, const std::vector<const History*>& runs);

}  // namespace tern::report::detail
