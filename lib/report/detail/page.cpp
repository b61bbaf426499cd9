#include "report/detail/page.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "report/detail/titles.hpp"

namespace tern::report::detail {
namespace {

// gnuplot writes colours as attributes, which style rules override, so that pictures follow the
// reader's light or dark setting.
constexpr std::string_view svg_style = R"(
:root { --paper: #ffffff; --ink: #1f2328; --grid: #d8dce2; --soft: #59636e;
  --c1: #0072b2; --c2: #d55e00; --c3: #009e73; --c4: #b5578a; --c5: #c98a00; --c6: #2f97d4; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181d; --ink: #e4e7eb; --grid: #343a43; --soft: #9aa4b0;
  --c1: #58aee6; --c2: #ff9459; --c3: #45cba0; --c4: #e79cc4; --c5: #f2bd4b; --c6: #a6d8f7; } }
svg text { font-family: system-ui, "Helvetica Neue", Arial, sans-serif; fill: var(--ink); }
svg [stroke='rgb(  0,   0,   0)'] { stroke: var(--soft); }
svg [stroke='rgb(190, 190, 190)'] { stroke: var(--grid); }
svg [stroke='rgb(  0, 114, 178)'] { stroke: var(--c1); } svg [color='rgb(  0, 114, 178)'] { color: var(--c1); }
svg [stroke='rgb(213,  94,   0)'] { stroke: var(--c2); } svg [color='rgb(213,  94,   0)'] { color: var(--c2); }
svg [stroke='rgb(  0, 158, 115)'] { stroke: var(--c3); } svg [color='rgb(  0, 158, 115)'] { color: var(--c3); }
svg [stroke='rgb(204, 121, 167)'] { stroke: var(--c4); } svg [color='rgb(204, 121, 167)'] { color: var(--c4); }
svg [stroke='rgb(230, 159,   0)'] { stroke: var(--c5); } svg [color='rgb(230, 159,   0)'] { color: var(--c5); }
svg [stroke='rgb( 86, 180, 233)'] { stroke: var(--c6); } svg [color='rgb( 86, 180, 233)'] { color: var(--c6); }
)";

constexpr std::string_view page_style = R"(
body { background: var(--paper); color: var(--ink); max-width: 76rem; margin: 2rem auto; padding: 0 1.5rem;
  font: 15px/1.5 system-ui, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
.about { color: var(--soft); margin: .2rem 0 1.5rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.4rem; }
figure { margin: 0; min-width: 0; } svg { width: 100%; height: auto; display: block; }
.wide { overflow-x: auto; }
.facts th { padding-right: 1.2rem; white-space: nowrap; vertical-align: top; }
.facts td { text-align: left; overflow-wrap: anywhere; }
code { color: var(--soft); font-size: .85em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .9rem; text-align: right; border-bottom: 1px solid var(--grid); }
th { color: var(--soft); font-weight: 600; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
.verdict { margin-bottom: 1.5rem; } .verdict th, .verdict td { text-align: left; vertical-align: top; }
.good, .remark, .warning, .failure { font-weight: 600; } .good { color: var(--c3); } .remark { color: var(--c1); }
.warning { color: var(--c5); } .failure { color: var(--c2); }
pre { border: 1px solid var(--grid); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto;
  font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
pre.samples { white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { margin: 1rem auto; padding: 0 .8rem; } th, td { padding: .25rem .5rem; } }
)";

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

std::string about(const History& history) {
  return fmt::format("step {} · {} between first and last entry · last entry {:%Y-%m-%d %H:%M} UTC",
                     history.last_step, duration(history.last_time - history.first_time),
                     fmt::gmtime(std::time_t(history.last_time)));
}

std::string number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                              : fmt::format("{:.6g}", value);
}

std::string named(const std::string& metric) {
  return fmt::format("<td>{} <code>{}</code>", escaped(title_of(metric)), escaped(metric));
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

std::string text_section(std::string_view title, std::string_view kind, std::string_view text) {
  if (text.empty()) return {};
  return fmt::format("<h2>{}</h2>\n<pre class=\"{}\">{}</pre>\n", title, kind, escaped(text));
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
                     inline_element.substr(0, open_end + 1), svg_style,
                     inline_element.substr(open_end + 1));
}

std::string html(const Page& page, const History& history) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{}</title>\n<style>{}{}</style>\n"
      "</head>\n<body>\n<h1>{}</h1>\n<p class=\"about\">{}</p>\n",
      escaped(page.title), svg_style, page_style, escaped(page.title), about(history));
  out += fact_table(page.facts) + page.verdict + "<div class=\"plots\">\n";
  for (const Picture& picture : page.pictures) out += "<figure>" + picture.svg + "</figure>\n";
  out += "</div>\n<h2>Last values</h2>\n" + value_table(history);
  out += text_section("Samples", "samples", page.samples);
  out += text_section("End of the log", "log", page.log);
  out += text_section("Deck", "deck", page.deck);
  return out + "</body>\n</html>\n";
}

}  // namespace tern::report::detail
