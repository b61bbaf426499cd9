#include "report/detail/gnuplot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.hpp"

namespace tern::report::detail {
namespace {

// Okabe and Ito's color-blind-safe palette; pictures.css brightens it on dark backgrounds.
constexpr const char* colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
constexpr int width = 480, height = 310, legend_row = 18;  // pixels

/// A string of gnuplot, on one line.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    if (c == '\'') out += c;
  }
  return "'" + out + "'";
}

std::string data_block(const std::string& name, const Line& line) {
  std::string out = fmt::format("{} << END\n", name);
  for (std::size_t i = 0; i < line.points.step.size(); ++i) {
    out += fmt::format("{:.10g} {:.8g}", line.points.step[i], line.points.value[i]);
    if (!line.low.empty()) out += fmt::format(" {:.8g} {:.8g}", line.low[i], line.high[i]);
    out += '\n';
  }
  return out + "END\n";
}

std::string drawn_line(const std::string& data, const Line& line) {
  const char* rgb = colors[line.color % std::size(colors)];
  const std::string title = line.label.empty() ? "notitle" : "title " + quoted(line.label);
  // A second round through the palette is dashed.
  const char* dashes = line.color < std::size(colors) ? "" : " dt 2";
  if (line.faint) return fmt::format("{} with lines lc rgb '#b0{}' lw 0.8 notitle", data, rgb + 1);
  const char* style = !line.low.empty() ? "yerrorlines" : line.dots ? "linespoints" : "lines";
  const char* points = line.dots || !line.low.empty() ? " pt 7 ps 0.4" : "";
  return fmt::format("{} with {} lc rgb '{}' lw 1.8{}{} {}", data, style, rgb, dashes, points,
                     title);
}

/// gnuplot's logarithmic axis, with tics at 1, 2, 5, 10, ... over few decades.
std::string logarithmic(const Axis& axis) {
  std::string tics;
  const double decades = std::log10(axis.high / axis.low);
  for (int power = int(std::floor(std::log10(axis.low)));
       power <= int(std::ceil(std::log10(axis.high))); ++power)
    for (const int digit : {1, 2, 5})
      if (digit == 1 || decades < 2.5)
        tics += fmt::format("{}{}e{}", tics.empty() ? "" : ", ", digit, power);
  return fmt::format("set logscale y\nset ytics ({})\n", tics);
}

std::string axis_text(const Axis& axis) {
  return (axis.logarithmic ? logarithmic(axis) : "unset logscale y\nset ytics autofreq\n") +
         fmt::format("set yrange [{:.4g}:{:.4g}]\n", axis.low, axis.high);
}

/// Columns and rows of a legend below the plot. gnuplot has place for two columns of short entries.
struct Legend {
  int columns, rows;
};
Legend legend_of(const std::vector<Line>& lines) {
  constexpr std::size_t short_entry = 20;  // letters
  std::size_t entries = 0, longest = 0;
  for (const Line& line : lines)
    if (!line.label.empty()) ++entries, longest = std::max(longest, line.label.size());
  const std::size_t columns = longest <= short_entry ? 2 : 1;
  const std::size_t rows = std::max<std::size_t>(1, (entries + columns - 1) / columns);
  return {static_cast<int>(columns), static_cast<int>(rows)};
}

std::string program_of(const Figure& figure, std::size_t number) {
  std::string data, lines;
  for (std::size_t i = 0; i < figure.lines.size(); ++i) {
    const std::string name = fmt::format("$p{}c{}", number, i);
    data += data_block(name, figure.lines[i]);
    lines += (i ? ", " : "") + drawn_line(name, figure.lines[i]);
  }
  // Small enough that text stays readable when a phone scales it down. More rows of the legend make
  // the picture taller, not the plot area smaller.
  const Legend legend = legend_of(figure.lines);
  const int more = legend_row * (legend.rows - 1);
  return fmt::format(
      "{}set terminal svg size {},{} dynamic noenhanced font 'sans-serif,13'\n"
      "set output '{}.svg'\nset bmargin at screen {:.4f}\nset tmargin at screen {:.4f}\n"
      "set key at screen 0.56,{:.4f} center bottom horizontal maxcols {}\n"
      "set xlabel '{}'\nset title {}\nset ylabel {}\n{}plot {}\n",
      data, width, height + more, figure.plot.file, (84.0 + more) / (height + more),
      1 - 34.0 / (height + more), 4.0 / (height + more), legend.columns,
      figure.plot.profile ? "fraction of masked tokens, t" : "optimizer step",
      quoted(figure.plot.title), quoted(figure.plot.unit), axis_text(figure.axis), lines);
}

constexpr const char* preamble = R"(set border 3 lc rgb '#000000' lw 0.8
set tics nomirror out scale 0.5
set grid back lc rgb '#bebebe' lw 0.6 dt 1
set key noenhanced samplen 1.6 font ',11'
set title font ',15' offset 0,-0.3
set xlabel offset 0,0.3
set format x '%.12g'
set format y '%g'
set xtics autofreq
set autoscale xfixmax
set xrange [0:*]
set lmargin at screen 0.15
set rmargin at screen 0.97
)";

}  // namespace

std::string gnuplot_program(const std::vector<Figure>& figures) {
  std::string out = preamble;
  for (std::size_t i = 0; i < figures.size(); ++i) out += program_of(figures[i], i);
  return out;
}

Ending draw(const std::vector<Figure>& figures, const std::filesystem::path& folder,
            const Limit& limit) {
  const auto run = [&](const std::vector<Figure>& drawn) {
    if (!replace_file(folder / "plots.gp", gnuplot_program(drawn))) return Ending::failed;
    return run_program({"gnuplot", "plots.gp"}, folder / "gnuplot.txt", limit, folder);
  };
  const Ending all = run(figures);
  if (all != Ending::failed) return all;
  // gnuplot ends at the first value that it cannot draw: the other plots are made without it.
  for (const Figure& figure : figures)
    if (run({figure}) == Ending::timed_out) return Ending::timed_out;
  return Ending::failed;
}

}  // namespace tern::report::detail
