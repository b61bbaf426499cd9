#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tern::report::detail {

/// One metric over the steps, in the order written.
struct Curve {
  std::vector<double> step, value;
};

/// What metrics.jsonl holds. Lines that are no objects with a step, and values that are neither
/// numbers nor texts nor null, are passed over.
struct History {
  std::map<std::string, Curve> curves;
  /// The last values of metrics whose names end in a number, `NAME/x`, over x: here under NAME.
  std::map<std::string, Curve> profiles;
  /// The steps at which a metric was null, which is how a number that is not finite is written.
  std::map<std::string, std::vector<double>> not_finite;
  std::map<std::string, std::string> last_texts;
  double first_time = 0, last_time = 0;  // Unix seconds
  std::int64_t last_step = 0;
};
/// "val/accuracy_t/0.275" -> "val/accuracy_t", 0.275; nothing for other names.
std::optional<std::pair<std::string, double>> profile_point(const std::string& metric);

History read_history(const std::filesystem::path& metrics_file);

/// At most `points` points that keep the curve's look: of each of points/2 equal parts of the
/// steps, the smallest and the largest value, so that no spike is lost.
Curve thinned(const Curve& curve, std::size_t points);

/// Mean over `width` points around each point, over fewer near the ends.
Curve smoothed(const Curve& curve, std::size_t width);

}  // namespace tern::report::detail
