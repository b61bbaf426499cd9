/// The report as one HTML text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "report/detail/facts.hpp"
#include "report/detail/history.hpp"

namespace tern::report::detail {

struct Picture {
  std::string title, svg;  // svg: an <svg> element
};

struct Page {
  std::string title;
  Facts facts;
  std::vector<Picture> pictures;
  std::string verdict;             // a section in HTML, before the pictures
  std::string deck, samples, log;  // plain texts; empty ones get no section
};

std::string html(const Page& page, const History& history);

std::string escaped(std::string_view text);

/// gnuplot's file as an element for a page (without XML declaration, with a label for screen
/// readers), and as a file that is readable alone, on light and dark paper.
std::string inline_svg(std::string_view gnuplot_file, std::string_view title);
std::string standalone_svg(std::string_view inline_element);

}  // namespace tern::report::detail
