#include "report/detail/page_data.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/json.hpp"

namespace tern::report::detail {
namespace {

using nlohmann::ordered_json;

/// In six digits, which is more than a screen shows. Numbers that are not finite become null.
ordered_json numbers(const std::vector<double>& values, double scale = 1) {
  ordered_json list = ordered_json::array();
  for (const double value : values) {
    const double scaled = value * scale;
    if (std::isfinite(scaled) && scaled == std::floor(scaled) && std::abs(scaled) < 0x1p53)
      list.push_back(static_cast<std::int64_t>(scaled));
    else
      list.push_back(std::isfinite(scaled) ? std::stod(fmt::format("{:.6g}", scaled)) : scaled);
  }
  return list;
}

ordered_json line_data(const Line& line) {
  ordered_json data = {{"label", line.label},
                       {"run", line.run},
                       {"color", line.color},
                       {"faint", line.faint},
                       {"dots", line.dots},
                       {"x", numbers(line.points.step)},
                       {"y", numbers(line.points.value)}};
  if (!line.low.empty()) data.update({{"low", numbers(line.low)}, {"high", numbers(line.high)}});
  return data;
}

ordered_json plot_data(const Figure& figure) {
  ordered_json lines = ordered_json::array();
  for (const Line& line : figure.lines) lines.push_back(line_data(line));
  return {{"file", figure.plot.file},
          {"title", figure.plot.title},
          {"unit", figure.plot.unit},
          {"x", figure.plot.profile ? "fraction of masked tokens, t" : ""},
          {"low", figure.axis.low},
          {"high", figure.axis.high},
          {"log", figure.axis.logarithmic},
          {"lines", std::move(lines)}};
}

/// A metric over the steps, from zero on; empty if it was not logged.
ordered_json scale_data(const History& history, const char* metric, double scale) {
  Curve curve;
  if (const auto found = history.curves.find(metric); found != history.curves.end())
    curve = downsampled(found->second, 1000);
  if (!curve.step.empty() && curve.step.front() > 0) {
    curve.step.insert(curve.step.begin(), 0);
    curve.value.insert(curve.value.begin(), 0);
  }
  return {{"x", numbers(curve.step)}, {"y", numbers(curve.value, scale)}};
}

}  // namespace

std::string page_data(const std::vector<Figure>& figures, const std::vector<const History*>& runs) {
  ordered_json data = {{"plots", ordered_json::array()}, {"runs", ordered_json::array()}};
  for (const Figure& figure : figures) data["plots"].push_back(plot_data(figure));
  for (const History* run : runs)
    data["runs"].push_back({{"tokens", scale_data(*run, "train/tokens", 1)},
                            {"hours", scale_data(*run, "system/seconds", 1.0 / 3600)}});
  std::string out;
  for (const char c : json_text(data, -1, InvalidUtf8::replaced))
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

}  // namespace tern::report::detail
