/// Fractions with a confidence interval.
#pragma once
#include <cstdint>
#include <string>

#include "base/json.hpp"

namespace tern::answer {

/// 95% confidence interval (Wilson 1927) of hits / of.
struct Interval {
  double low, high;
};
Interval wilson(std::int64_t hits, std::int64_t of);

/// Adds hits / of as `name`, and its interval as `name`_95: [low, high].
void add_fraction(nlohmann::ordered_json& record, const std::string& name, std::int64_t hits,
                  std::int64_t of);

}  // namespace tern::answer
