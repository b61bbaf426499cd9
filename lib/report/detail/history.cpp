#include "report/detail/history.hpp"

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/lines.hpp"

#include <algorithm>
#include <cstdlib>

namespace tern::report::detail {
namespace {

void add_entry(History& history, const nlohmann::json& entry) {
  const auto step = entry["step"].get<std::int64_t>();
  history.last_step = std::max(history.last_step, step);
  for (const auto& [name, value] : entry.items()) {
    if (name == "step") continue;
    if (name == "time" && value.is_number()) {
      history.last_time = value.get<double>();
      if (history.first_time == 0) history.first_time = history.last_time;
    } else if (value.is_number()) {
      Curve& curve = history.curves[name];
      curve.step.push_back(double(step));
      curve.value.push_back(value.get<double>());
    } else if (value.is_null()) {
      history.not_finite[name].push_back(double(step));
    } else if (value.is_string()) {
      history.last_texts[name] = value.get<std::string>();
    }
  }
}

/// Moves curves named NAME/x into profiles, in order of x.
void collect_profiles(History& history) {
  for (auto at = history.curves.begin(); at != history.curves.end();) {
    const auto point = profile_point(at->first);
    if (!point) {
      ++at;
      continue;
    }
    Curve& profile = history.profiles[point->first];
    profile.step.push_back(point->second);  // the map is in order of x: equal numbers of digits
    profile.value.push_back(at->second.value.back());
    at = history.curves.erase(at);
  }
}

}  // namespace

std::optional<std::pair<std::string, double>> profile_point(const std::string& metric) {
  const auto slash = metric.rfind('/');
  if (slash == metric.find('/')) return std::nullopt;  // fewer than two slashes
  char* end = nullptr;
  const double x = std::strtod(metric.c_str() + slash + 1, &end);
  if (*end != '\0' || end == metric.c_str() + slash + 1) return std::nullopt;
  return std::pair(metric.substr(0, slash), x);
}

History read_history(const std::filesystem::path& metrics_file) {
  History history;
  const std::string text = read_text_or_empty(metrics_file);
  for (const Line& line : Lines(text)) {
    const auto entry = try_json(line.text);
    if (entry.is_object() && entry.contains("step") && entry["step"].is_number_integer())
      add_entry(history, entry);
  }
  collect_profiles(history);
  return history;
}

Curve downsampled(const Curve& curve, std::size_t points) {
  const std::size_t n = curve.value.size(), parts = std::max<std::size_t>(points / 2, 1);
  if (n <= 2 * parts) return curve;
  Curve out;
  for (std::size_t part = 0; part < parts; ++part) {
    const auto begin = curve.value.begin() + std::ptrdiff_t(n * part / parts);
    const auto end = curve.value.begin() + std::ptrdiff_t(n * (part + 1) / parts);
    auto [low, high] = std::minmax_element(begin, end);
    if (high < low) std::swap(low, high);
    for (auto at : {low, high}) {
      out.step.push_back(curve.step[std::size_t(at - curve.value.begin())]);
      out.value.push_back(*at);
    }
  }
  return out;
}

Curve smoothed(const Curve& curve, std::size_t width) {
  const std::size_t n = curve.value.size(), half = width / 2;
  std::vector<double> sum(n + 1, 0.0);  // prefix sums
  for (std::size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + curve.value[i];
  Curve out{curve.step, curve.value};
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t reach = std::min(half, i);  // narrower at the ends: keeps the steep start
    const std::size_t first = i - reach, last = std::min(i + reach, n - 1);
    out.value[i] = (sum[last + 1] - sum[first]) / double(last + 1 - first);
  }
  return out;
}

}  // namespace tern::report::detail
