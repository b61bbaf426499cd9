/// How sure a share is.
#pragma once
#include <cstdint>

namespace tern::answer {

/// 95% confidence interval of a share (Wilson 1927).
struct Interval {
  double low, high;
};
Interval wilson(std::int64_t hits, std::int64_t of);

}  // namespace tern::answer
