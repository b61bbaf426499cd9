#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tern::report::detail {

/// One metric over the steps, in file order.
struct Curve {
  std::vector<double> step, value;
};

/// Contents of metrics.jsonl. Lines other than objects with a step, and values other than numbers,
/// texts and null, are skipped.
struct History {
  std::map<std::string, Curve> curves;
  /// Last values of metrics named `NAME/x` with a number x: a curve over x, under NAME.
  std::map<std::string, Curve> profiles;
  /// Steps at which a metric was null, that is, not finite.
  std::map<std::string, std::vector<double>> not_finite;
  std::map<std::string, std::string> last_texts;
  double first_time = 0, last_time = 0;  // Unix seconds
  std::int64_t last_step = 0;
};
/// "val/accuracy_t/0.275" -> "val/accuracy_t", 0.275; nothing for other names.
std::optional<std::pair<std::string, double>> profile_point(const std::string& metric);

History read_history(const std::filesystem::path& metrics_file);

/// At most `points` points: minimum and maximum of each of points/2 equal intervals of the steps,
/// so that no spike is lost.
Curve downsampled(const Curve& curve, std::size_t points);

/// Mean over `width` points around each point, fewer near the ends.
Curve smoothed(const Curve& curve, std::size_t width);

}  // namespace tern::report::detail
