#include "report/detail/stability.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "report/verdict.hpp"

namespace tern::report::detail {

double median(std::vector<double> values) {
  TERN_REQUIRE(!values.empty(), "the median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Stability stability_of(const std::vector<double>& losses) {
  constexpr std::size_t width = verdict_bars::mean_over;
  TERN_REQUIRE(losses.size() > width, "{} losses have no mean over {}", losses.size(), width);
  Stability worst;
  std::vector<double> changes;
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t i = width; i < losses.size(); ++i) {
    const auto before = losses.begin() + std::ptrdiff_t(i - width);
    const double mean = std::accumulate(before, before + width, 0.0) / width;
    lowest = std::min(lowest, mean);
    const double rise = (losses[i] - lowest) / std::max(lowest, verdict_bars::smallest_mean);
    if (rise > worst.rise) worst.rise = rise, worst.at = i;
    changes.push_back(std::abs(losses[i] - losses[i - 1]) /
                      std::max(mean, verdict_bars::smallest_mean));
  }
  worst.jitter = median(std::move(changes));
  return worst;
}

}  // namespace tern::report::detail
