#include "text/detail/portable_pattern.hpp"

#include <cctype>

#include "base/error.hpp"

namespace tern::text::detail {
namespace {

// Contents of bracket expressions.
constexpr std::string_view white_space =
    "\\t-\\r "
    "\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
// With additions of Unicode 15 to 16.
constexpr std::string_view letters =
    "\\p{L}"
    "\\x{1C89}-\\x{1C8A}\\x{A7CB}-\\x{A7CD}\\x{A7DA}-\\x{A7DC}\\x{105C0}-\\x{105F3}"
    "\\x{10D4A}-\\x{10D65}\\x{10D6F}-\\x{10D85}\\x{10EC2}-\\x{10EC4}\\x{1123F}-\\x{11240}"
    "\\x{11380}-\\x{11389}\\x{1138B}\\x{1138E}\\x{11390}-\\x{113B5}\\x{113B7}\\x{113D1}"
    "\\x{113D3}\\x{11BC0}-\\x{11BE0}\\x{11F02}\\x{11F04}-\\x{11F10}\\x{11F12}-\\x{11F33}"
    "\\x{1342F}\\x{13441}-\\x{13446}\\x{13460}-\\x{143FA}\\x{16100}-\\x{1611D}"
    "\\x{16D40}-\\x{16D6C}\\x{18CFF}\\x{1B132}\\x{1B155}\\x{1DF25}-\\x{1DF2A}"
    "\\x{1E030}-\\x{1E06D}\\x{1E4D0}-\\x{1E4EB}\\x{1E5D0}-\\x{1E5ED}\\x{1E5F0}\\x{2B739}"
    "\\x{2EBF0}-\\x{2EE5D}\\x{31350}-\\x{323AF}";
constexpr std::string_view numbers =
    "\\p{N}"
    "\\x{10D40}-\\x{10D49}\\x{116D0}-\\x{116E3}\\x{11BF0}-\\x{11BF9}\\x{11F50}-\\x{11F59}"
    "\\x{16130}-\\x{16139}\\x{16D70}-\\x{16D79}\\x{1CCF0}-\\x{1CCF9}\\x{1D2C0}-\\x{1D2D3}"
    "\\x{1E4F0}-\\x{1E4F9}\\x{1E5F1}-\\x{1E5FA}";
// Oniguruma's word characters other than letters, including superscripts and fractions of Latin-1.
constexpr std::string_view word =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr std::string_view hex_digits = "0-9A-Fa-f";

/// Alphanumeric escapes with the same meaning in both, inside brackets and outside.
constexpr std::string_view shared_escapes = "dDnrtfaexpPAzZkgRX0123456789c";

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Translates a pattern in one pass.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      if (next() == '\\')
        escape();
      else if (bracket_)
        in_brackets();
      else
        outside();
    }
    return std::move(result_);
  }

 private:
  char next(std::size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  void put(std::size_t length, std::string_view replacement) {
    at_ += length;
    result_ += replacement;
  }
  void keep(std::size_t length) { put(length, pattern_.substr(at_, length)); }
  /// A character class, given as contents of brackets.
  void put_class(std::size_t length, std::string_view inside) {
    put(length, bracket_ ? std::string(inside) : fmt::format("[{}]", inside));
  }
  [[noreturn]] void refuse(std::string_view what, const char* why) const {
    user_error("pattern '{}': {} at character {} {}", pattern_, what, at_ + 1, why);
  }

  void escape() {
    const char letter = next(1);
    if (starts("\\p{L}")) return put_class(5, letters);
    if (starts("\\p{N}")) return put_class(5, numbers);
    if (letter == 's') return put_class(2, white_space);
    if (letter == 'h') return put_class(2, hex_digits);
    if (letter == 'w') return put_class(2, fmt::format("{}{}", letters, word));
    if (letter == 'v') return put(2, "\\x{0B}");
    if (letter == 'S') return bracket_ ? keep(2) : put(2, fmt::format("[^{}]", white_space));
    if (letter == 'H' && !bracket_) return put(2, fmt::format("[^{}]", hex_digits));
    if (letter == 'u') return put(6, fmt::format("\\x{{{}}}", pattern_.substr(at_ + 2, 4)));
    if (is_word(letter) && shared_escapes.find(letter) == shared_escapes.npos)
      refuse(pattern_.substr(at_, 2), "is not supported: PCRE2 and Oniguruma differ in it");
    keep(std::min<std::size_t>(2, pattern_.size() - at_));
  }

  void in_brackets() {
    if (starts("&&")) refuse("&&", "is not supported: write the brackets without intersections");
    if (next() == '[') refuse("[", "is not supported: write the brackets without others in them");
    if (next() == ']') bracket_ = false;
    keep(1);
  }

  void outside() {
    switch (next()) {
      case '[':
        return open_brackets();
      case '^':
        return put(1, "(?:\\A|(?<=\\n)(?!\\z))");
      case '$':
        return put(1, "(?=\\n|\\z)");
      case '(':
        return open_group();
      case '{':
        return quantify();
      default:
        return keep(1);
    }
  }

  void open_brackets() {
    bracket_ = true;
    keep(next(1) == '^' ? 2 : 1);
    if (next() == ']') refuse("]", "is not supported as the first in brackets: write \\]");
  }

  /// Options of a group, (?im-x) or (?im-x:
  void open_group() {
    if (starts("(*")) refuse("(*", "is not supported");
    keep(1);
    if (next() != '?') return;
    std::size_t length = 1;
    while (std::string_view("imx-").find(next(length)) != std::string_view::npos && next(length))
      ++length;
    if (next(length) != ':' && next(length) != ')') {
      if (std::string_view("=!<>").find(next(1)) == std::string_view::npos || next(1) == '\0')
        refuse(fmt::format("(?{}", next(1)), "is not supported");
      return keep(1);
    }
    std::string options(pattern_.substr(at_, length));
    for (char& option : options)
      if (option == 'm') option = 's';
    put(length, options);
  }

  /// {n}, {n,m}, {n,}, {,m}; anything else is literal.
  void quantify() {
    const std::size_t close = pattern_.find('}', at_);
    const std::string_view inside =
        close == pattern_.npos ? "" : pattern_.substr(at_ + 1, close - at_ - 1);
    if (inside.empty() || inside == "," || inside.find_first_not_of("0123456789,") != inside.npos)
      return put(1, "\\{");
    const bool range = inside.find(',') != inside.npos;
    const char after = close + 1 < pattern_.size() ? pattern_[close + 1] : '\0';
    if (after == '+' || (after == '?' && !range))
      refuse(pattern_.substr(at_, close - at_ + 2),
             "is not supported: PCRE2 and Oniguruma differ in it");
    put(inside.size() + 2, fmt::format("{{{}{}}}", inside.front() == ',' ? "0" : "", inside));
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  bool bracket_ = false;
  std::string result_;
};

}  // namespace

std::string portable_pattern(std::string_view pattern) { return Translation(pattern).run(); }

}  // namespace tern::text::detail
