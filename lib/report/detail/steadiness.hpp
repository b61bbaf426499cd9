#pragma once
#include <vector>

namespace tern::report::detail {

/// How steadily a loss fell: rise and jitter of campaign/verdict.hpp.
struct Steadiness {
  double rise = 0;
  std::size_t at = 0;  // the index of the rise
  double jitter = 0;
};
/// Of more than verdict_bars::mean_over finite values.
Steadiness steadiness_of(const std::vector<double>& losses);

/// Of at least one value; the mean of the middle two of an even number.
double median(std::vector<double> values);

}  // namespace tern::report::detail
