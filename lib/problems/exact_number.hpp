/// Exact arithmetic on the numbers of word problems.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tern::problems {

/// Fraction in lowest terms. Invalid after a division by zero, or beyond 10^15 above or below the
/// line; an operation on an invalid number is invalid.
class Exact {
 public:
  Exact() = default;
  Exact(std::int64_t whole) : Exact(whole, 1) {}  // NOLINT: whole numbers are exact
  Exact(std::int64_t above, std::int64_t below) : Exact(reduced(above, below)) {}
  /// Digits, commas and at most one decimal point, as "1,250.5".
  static Exact parse(std::string_view digits);

  bool valid() const { return below_ != 0; }
  bool whole() const { return below_ == 1; }
  int sign() const { return above_ < 0 ? -1 : above_ > 0; }
  /// Value of a whole number.
  std::int64_t value() const { return above_; }
  /// Digits after the decimal point; empty if the decimals do not end within six.
  std::optional<int> decimals() const;
  /// In decimals, which must end: "1250.5", or with `commas` "1,250.5"; at least `decimals` of them.
  std::string text(bool commas = false, int decimals = 0) const;

  friend Exact operator+(const Exact& a, const Exact& b);
  friend Exact operator-(const Exact& a, const Exact& b);
  friend Exact operator*(const Exact& a, const Exact& b);
  friend Exact operator/(const Exact& a, const Exact& b);
  friend bool operator==(const Exact&, const Exact&) = default;
  /// Order of valid numbers.
  friend std::strong_ordering operator<=>(const Exact& a, const Exact& b);

 private:
  __extension__ using Wide = __int128;
  static Exact reduced(Wide above, Wide below);

  std::int64_t above_ = 0, below_ = 1;
};

}  // namespace tern::problems
