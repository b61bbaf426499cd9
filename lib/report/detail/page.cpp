#include "report/detail/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/detail/page_files.hpp"
#include "report/detail/titles.hpp"

namespace tern::report::detail {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Removes gnuplot's empty groups.
std::string without_empty_groups(std::string svg) {
  constexpr std::string_view close = "</g>";
  for (std::size_t at = 0; (at = svg.find("<g ", at)) != std::string::npos;) {
    const std::size_t open_end = svg.find('>', at);
    if (open_end == std::string::npos) break;
    const std::size_t next = svg.find_first_not_of(" \t\n", open_end + 1);
    if (next != std::string::npos && svg.compare(next, close.size(), close) == 0)
      svg.erase(at, next + close.size() - at);
    else
      at = open_end;
  }
  return svg;
}

std::string number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                              : fmt::format("{:.6g}", value);
}

std::string named(const std::string& metric) {
  return fmt::format("<td>{} <code>{}</code>", escaped(title_of(metric)), escaped(metric));
}

std::string card_list(const std::vector<Card>& cards) {
  if (cards.empty()) return {};
  std::string out = "<dl class=\"cards\">\n";
  for (const Card& card : cards)
    out += fmt::format("<div><dt>{}<dd class=\"value\">{}<dd class=\"note\">{}</div>\n",
                       escaped(card.title), escaped(card.value), escaped(card.note));
  return out + "</dl>\n";
}

/// The pictures of a section, each of which the script replaces by a chart.
std::string picture_grid(const Page& page, Section section, std::string_view kind) {
  std::string out;
  for (std::size_t i = 0; i < page.pictures.size(); ++i)
    if (page.pictures[i].section == section)
      out += fmt::format("<figure data-plot=\"{}\"><div class=\"still\">{}</div></figure>\n", i,
                         page.pictures[i].svg);
  return out.empty() ? out : fmt::format("<div class=\"{}\">\n{}</div>\n", kind, out);
}

std::string scripts(const Page& page) {
  if (dygraphs_js().empty()) return {};
  return fmt::format(
      "<script type=\"application/json\" id=\"figures\">{}</script>\n"
      "<script>{}</script>\n<script>{}</script>\n",
      page.figures, dygraphs_js(), report_js());
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string fact_table(const Facts& facts) {
  std::string rows;
  for (const auto& [name, text] : facts)
    rows += fmt::format("<tr><th>{}<td>{}</tr>\n", escaped(name), escaped(text));
  return rows.empty() ? rows : "<table class=\"facts\">\n" + rows + "</table>\n";
}

std::string value_table(const History& history) {
  std::string rows;
  for (const auto& [name, curve] : history.curves) {
    const auto [low, high] = std::minmax_element(curve.value.begin(), curve.value.end());
    rows += fmt::format("<tr>{}<td>{}<td>{}<td>{}<td>{}</tr>\n", named(name),
                        number(curve.value.back()), number(curve.step.back()), number(*low),
                        number(*high));
  }
  for (const auto& [name, text] : history.last_texts)
    rows += fmt::format("<tr>{}<td>{}<td><td><td></tr>\n", named(name), escaped(text));
  return "<div class=\"wide\"><table>\n<tr><th>metric<th>last<th>at "
         "step<th>minimum<th>maximum</tr>\n" +
         rows + "</table></div>\n";
}

std::string folded(std::string_view title, std::string_view note, const std::string& content) {
  if (content.empty()) return {};
  const std::string more =
      note.empty() ? "" : fmt::format("<span class=\"note\">{}</span>", escaped(note));
  return fmt::format("<details>\n<summary>{}{}</summary>\n{}</details>\n", escaped(title), more,
                     content);
}

std::string folded_text(std::string_view title, std::string_view kind, std::string_view text) {
  if (text.empty()) return {};
  return folded(title, "", fmt::format("<pre class=\"{}\">{}</pre>\n", kind, escaped(text)));
}

std::string inline_svg(std::string_view gnuplot_file, std::string_view title) {
  const std::size_t begin = gnuplot_file.find("<svg");
  if (begin == std::string_view::npos || gnuplot_file.find("</svg>") == std::string_view::npos)
    return {};  // missing or truncated
  std::string svg(gnuplot_file.substr(begin));
  svg = replaced(std::move(svg), "<title>Gnuplot</title>", "");
  svg = replaced(std::move(svg), "<title></title>", "");
  svg.replace(0, 4, fmt::format("<svg role=\"img\" aria-label=\"{}\"", escaped(title)));
  return without_empty_groups(std::move(svg));
}

std::string standalone_svg(std::string_view inline_element) {
  const std::size_t open_end = inline_element.find('>');
  return fmt::format("{}\n<style>{}svg {{ background: var(--paper); }}</style>{}",
                     inline_element.substr(0, open_end + 1), pictures_css(),
                     inline_element.substr(open_end + 1));
}

std::string html(const Page& page) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n"
      "<style>{2}</style>\n<style "
      "id=\"pictures\">{3}</style>\n<style>{4}</style>\n</head>\n<body>\n"
      "<h1>{0}</h1>\n<p class=\"about\">{1}</p>\n",
      escaped(page.title), escaped(page.about), dygraphs_css(), pictures_css(), report_css());
  out += card_list(page.cards) + page.lead + "<div class=\"switch\"></div>\n";
  out += picture_grid(page, Section::main, "plots large");
  if (!page.samples.empty())
    out +=
        fmt::format("<h2>Samples</h2>\n<pre class=\"samples\">{}</pre>\n", escaped(page.samples));
  for (const Section section : sections)
    if (section != Section::main)
      out += folded(section_title(section), "", picture_grid(page, section, "plots"));
  for (const std::string& section : page.sections) out += section;
  return out + scripts(page) + "</body>\n</html>\n";
}

}  // namespace tern::report::detail
