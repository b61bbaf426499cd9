#include "answer/interval.hpp"

#include <algorithm>
#include <cmath>

namespace tern::answer {

Interval wilson(std::int64_t hits, std::int64_t of) {
  if (of == 0) return {0, 1};
  constexpr double z = 1.959963984540054;
  const double n = static_cast<double>(of), p = static_cast<double>(hits) / n;
  const double center = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {std::max(0.0, center - half), std::min(1.0, center + half)};
}

void add_fraction(nlohmann::ordered_json& record, const std::string& name, std::int64_t hits,
                  std::int64_t of) {
  const Interval interval = wilson(hits, of);
  record[name] = static_cast<double>(hits) / static_cast<double>(of);
  record[name + "_95"] = {interval.low, interval.high};
}

}  // namespace tern::answer
