/// Figures as SVG pictures, drawn by gnuplot.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "report/detail/figures.hpp"
#include "report/detail/process.hpp"

namespace tern::report::detail {

/// gnuplot program that writes FILE.svg for each figure into gnuplot's current directory. The plot
/// areas of all pictures have the same margins, and legends are below them.
std::string gnuplot_program(const std::vector<Figure>& figures);

/// Draws all figures in `folder`, which exists; `limit` holds for each start of gnuplot, whose
/// output goes to folder/gnuplot.txt. A figure that gnuplot cannot draw costs its own picture only.
Ending draw(const std::vector<Figure>& figures, const std::filesystem::path& folder,
            const Limit& limit);

}  // namespace tern::report::detail
