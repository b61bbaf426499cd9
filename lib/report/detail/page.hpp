/// The report as one HTML text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "report/detail/cards.hpp"
#include "report/detail/facts.hpp"
#include "report/detail/figures.hpp"

namespace tern::report::detail {

struct Picture {
  Section section = Section::main;
  std::string svg;  // one <svg> element; empty: gnuplot drew none
};

struct Page {
  std::string title, about;
  std::vector<Card> cards;
  std::string lead;                   // HTML before the pictures: a verdict, or tables
  std::vector<Picture> pictures;      // of the figures, in their order
  std::string figures;                // page_data() of them
  std::string samples;                // plain text; no section if empty
  std::vector<std::string> sections;  // HTML, after the folded pictures
};

/// Needs nothing but itself: styles, data and scripts are in it, and its policy keeps a browser from
/// fetching anything else.
std::string html(const Page& page);

/// A folded section: plain title and note, HTML content; empty without content.
std::string folded(std::string_view title, std::string_view note, const std::string& content);
/// A folded section of plain text.
std::string folded_text(std::string_view title, std::string_view kind, std::string_view text);
std::string fact_table(const Facts& facts);
/// Last, lowest and highest values of all metrics.
std::string value_table(const History& history);

std::string escaped(std::string_view text);

/// gnuplot's file as an element of a page (without XML declaration, with a label for screen
/// readers), and as a standalone file for light and dark backgrounds.
std::string inline_svg(std::string_view gnuplot_file, std::string_view title);
std::string standalone_svg(std::string_view inline_element);

}  // namespace tern::report::detail
