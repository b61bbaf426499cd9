#include "problems/exact_number.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.hpp"

namespace tern::problems {
namespace {

constexpr std::int64_t limit = 1'000'000'000'000'000;
constexpr int most_decimals = 6;

std::int64_t power_of_ten(int n) {
  std::int64_t power = 1;
  for (; n > 0; --n) power *= 10;
  return power;
}

}  // namespace

Exact Exact::reduced(Wide above, Wide below) {
  Exact result;
  result.below_ = 0;
  if (below == 0) return result;
  if (below < 0) above = -above, below = -below;
  if (below != 1) {  // divisions of 128 bits are slow
    Wide a = above < 0 ? -above : above, b = below;
    while (b != 0) a = std::exchange(b, a % b);
    above /= a, below /= a;
  }
  if (above > limit || above < -limit || below > limit) return result;
  result.above_ = static_cast<std::int64_t>(above);
  result.below_ = static_cast<std::int64_t>(below);
  return result;
}

Exact Exact::parse(std::string_view digits) {
  Wide above = 0, below = 1;
  bool after = false;
  for (const char c : digits) {
    if (c == ',') continue;
    if (c == '.') {
      after = true;
      continue;
    }
    above = 10 * above + (c - '0');
    if (after) below *= 10;
    if (above > Wide{limit} * 1000 || below > limit) return reduced(0, 0);
  }
  return reduced(above, below);
}

std::optional<int> Exact::decimals() const {
  for (int n = 0; n <= most_decimals; ++n)
    if (below_ != 0 && power_of_ten(n) % below_ == 0) return n;
  return std::nullopt;
}

std::string Exact::text(bool commas, int least) const {
  const auto needed = decimals();
  TERN_REQUIRE(needed, "{}/{} has no end", above_, below_);
  const int n = std::max(*needed, least);
  const std::int64_t unit = power_of_ten(*needed), scaled = above_ * (unit / below_);
  const std::int64_t size = scaled < 0 ? -scaled : scaled;
  std::string whole = std::to_string(size / unit);
  if (commas)
    for (std::size_t at = whole.size(); at > 3; at -= 3) whole.insert(at - 3, 1, ',');
  if (scaled < 0) whole.insert(0, 1, '-');
  if (n == 0) return whole;
  std::string after = *needed == 0 ? "" : std::to_string(size % unit);
  after.insert(0, static_cast<std::size_t>(*needed) - after.size(), '0');
  after.append(static_cast<std::size_t>(n - *needed), '0');
  return whole + '.' + after;
}

Exact operator+(const Exact& a, const Exact& b) {
  using Wide = Exact::Wide;
  return Exact::reduced(Wide{a.above_} * b.below_ + Wide{b.above_} * a.below_,
                        Wide{a.below_} * b.below_);
}
Exact operator-(const Exact& a, const Exact& b) {
  using Wide = Exact::Wide;
  return Exact::reduced(Wide{a.above_} * b.below_ - Wide{b.above_} * a.below_,
                        Wide{a.below_} * b.below_);
}
Exact operator*(const Exact& a, const Exact& b) {
  using Wide = Exact::Wide;
  return Exact::reduced(Wide{a.above_} * b.above_, Wide{a.below_} * b.below_);
}
Exact operator/(const Exact& a, const Exact& b) {
  using Wide = Exact::Wide;
  return Exact::reduced(Wide{a.above_} * b.below_, Wide{a.below_} * b.above_ * (b.valid() ? 1 : 0));
}

std::strong_ordering operator<=>(const Exact& a, const Exact& b) {
  __extension__ using Wide = __int128;
  const Wide left = Wide{a.above_} * b.below_, right = Wide{b.above_} * a.below_;
  return left < right   ? std::strong_ordering::less
         : left > right ? std::strong_ordering::greater
                        : std::strong_ordering::equal;
}

}  // namespace tern::problems
