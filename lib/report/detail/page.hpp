/// The report as one HTML text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "report/detail/facts.hpp"
#include "report/detail/history.hpp"

namespace tern::report::detail {

struct Picture {
  std::string title, svg;  // svg: one <svg> element
};

struct Page {
  std::string title;
  Facts facts;
  std::vector<Picture> pictures;
  std::string verdict;             // HTML section, before the pictures
  std::string deck, samples, log;  // plain text; no section if empty
};

std::string html(const Page& page, const History& history);

std::string escaped(std::string_view text);

/// gnuplot's file as an element of a page (without XML declaration, with a label for screen
/// readers), and as a standalone file for light and dark backgrounds.
std::string inline_svg(std::string_view gnuplot_file, std::string_view title);
std::string standalone_svg(std::string_view inline_element);

}  // namespace tern::report::detail
