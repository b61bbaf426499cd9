#pragma once
#include <vector>

namespace tern::report::detail {

/// Rise and jitter of a loss, as defined in report/verdict.hpp.
struct Stability {
  double rise = 0;
  std::size_t at = 0;  // index of the rise
  double jitter = 0;
};
/// Requires more than verdict_bars::mean_over finite values.
Stability stability_of(const std::vector<double>& losses);

/// Requires at least one value; the mean of the middle two for even counts.
double median(std::vector<double> values);

}  // namespace tern::report::detail
