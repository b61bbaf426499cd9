/// Confidence interval of a fraction.
#pragma once
#include <cstdint>

namespace tern::answer {

/// 95% confidence interval (Wilson 1927) of hits / of.
struct Interval {
  double low, high;
};
Interval wilson(std::int64_t hits, std::int64_t of);

}  // namespace tern::answer
