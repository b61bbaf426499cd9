#include "words/numbers.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tern {

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string rounded(double value, int digits) {
  if (!std::isfinite(value) || std::abs(value) < 1000 || std::abs(value) >= 1e15)
    return fmt::format("{:.{}g}", value, digits);
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) + 1 - digits);
  const double whole = unit > 1 ? std::round(value / unit) * unit : std::round(value);
  return grouped(static_cast<std::int64_t>(whole));
}

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.{}f} s", seconds, seconds < 9.95 ? 1 : 0);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string counted(std::int64_t number, const std::string& what) {
  return fmt::format("{} {}{}", grouped(number), what, number == 1 ? "" : "s");
}

std::string token_count(std::int64_t tokens) {
  return tokens < 1'000'000 ? counted(tokens, "token")
                            : fmt::format("{:.1f} M tokens", static_cast<double>(tokens) / 1e6);
}

}  // namespace tern
