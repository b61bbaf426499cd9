#include "text/detail/portable_pattern.hpp"

#include <cctype>
#include <cstdint>

#include "base/error.hpp"
#include "text/detail/property.hpp"

namespace tern::text::detail {
namespace {

constexpr std::uint32_t largest_code_point = 0x10FFFF;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_octal(char c) { return c >= '0' && c <= '7'; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

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
  void put_code_point(std::size_t length, std::uint32_t c) {
    put(length, fmt::format("\\x{{{:X}}}", c));
  }
  /// A set of characters. PCRE2 before 10.45 has no complement of a set in brackets.
  void put_set(std::size_t length, const CharacterSet& set, bool complement = false) {
    complement = complement != set.complement;
    if (bracket_) return put(length, complement ? complement_of(set.inside) : set.inside);
    put(length, fmt::format("[{}{}]", complement ? "^" : "", set.inside));
  }
  [[noreturn]] void refuse(std::string_view what, const char* why) const {
    user_error("pattern '{}': {} at character {} {}", pattern_, what, at_ + 1, why);
  }
  [[noreturn]] void refuse_escape() const {
    refuse(pattern_.substr(at_, 2), "is not supported: PCRE2 and Oniguruma differ in it");
  }

  void escape() {
    const char letter = next(1);
    switch (letter) {
      case 'p':
      case 'P':
        return named_set(letter == 'P');
      case 's':
      case 'S':
        return put_set(2, white_space(), letter == 'S');
      case 'h':
      case 'H':
        return put_set(2, hex_digits(), letter == 'H');
      case 'w':
      case 'W':
        return put_set(2, word_characters(bracket_), letter == 'W');
      case 'd':
      case 'D':
        return put_set(2, *property("Nd"), letter == 'D');
      case 'x':
        return hexadecimal();
      case 'u':
        return four_digits();
      case 'c':
        return control();
      case 'v':
        return put_code_point(2, 0x0B);
      case 'k':
      case 'g':
        return group_by_name();
      default:
        break;
    }
    if (std::isdigit(static_cast<unsigned char>(letter)) != 0) return number();
    // The same in both, in brackets and outside; and what is not a character, outside.
    const bool shared =
        std::string_view("nrtfae").find(letter) != std::string_view::npos ||
        (!bracket_ && std::string_view("AzZRX").find(letter) != std::string_view::npos);
    if (is_word(letter) && !shared) refuse_escape();
    keep(std::min<std::size_t>(2, pattern_.size() - at_));
  }

  /// What stands between the opening character at `ahead` and `close`; empty if it is not closed.
  std::string_view enclosed(std::size_t ahead, char close) const {
    const std::size_t first = at_ + ahead + 1, end = pattern_.find(close, first);
    return end == pattern_.npos ? std::string_view() : pattern_.substr(first, end - first);
  }

  /// \p{NAME}, \P{NAME} and \p{^NAME}. Without braces Oniguruma reads the letter.
  void named_set(bool complement) {
    const std::string_view whole = next(2) == '{' ? enclosed(2, '}') : std::string_view();
    if (whole.empty()) refuse_escape();
    std::string_view name = whole;
    if (name.front() == '^') {
      complement = !complement;
      name.remove_prefix(1);
    }
    const auto set = property(name);
    if (!set)
      refuse(pattern_.substr(at_, whole.size() + 4),
             "is not supported; general categories and scripts are");
    put_set(whole.size() + 4, *set, complement);
  }

  /// \xH, \xHH and \x{H...}. Oniguruma reads bytes where one is 0x80 or more and has no braces.
  void hexadecimal() {
    const bool braces = next(2) == '{';
    std::string_view digits = braces ? enclosed(2, '}') : pattern_.substr(at_ + 2, 2);
    if (!braces)
      while (!digits.empty() && !is_hex(digits.back())) digits.remove_suffix(1);
    std::uint32_t c = 0;
    bool valid = !digits.empty() && digits.size() <= 8;
    for (const char digit : digits) {
      valid = valid && is_hex(digit) && c <= largest_code_point;
      if (valid) c = 16 * c + static_cast<std::uint32_t>(hex_value(digit));
    }
    if (!valid || c > (braces ? largest_code_point : 0x7F))
      refuse(pattern_.substr(at_, 2),
             "is not followed by one code point as {HEX}, or by two digits below 80");
    put_code_point(digits.size() + (braces ? 4 : 2), c);
  }

  static int hex_value(char digit) {
    if (digit <= '9') return digit - '0';
    return std::tolower(static_cast<unsigned char>(digit)) - 'a' + 10;
  }

  /// \uHHHH
  void four_digits() {
    const std::string_view digits = pattern_.substr(std::min(at_ + 2, pattern_.size()), 4);
    std::uint32_t c = 0;
    for (const char digit : digits) {
      if (!is_hex(digit))
        refuse(pattern_.substr(at_, 2), "is not followed by four hexadecimal digits");
      c = 16 * c + static_cast<std::uint32_t>(hex_value(digit));
    }
    if (digits.size() < 4)
      refuse(pattern_.substr(at_, 2), "is not followed by four hexadecimal digits");
    put_code_point(6, c);
  }

  /// \cX, X a letter
  void control() {
    if (std::isalpha(static_cast<unsigned char>(next(2))) == 0) refuse_escape();
    put_code_point(3, static_cast<std::uint32_t>(next(2)) & 0x1F);
  }

  /// \k<NAME>, \k'NAME' and the same with g. PCRE2 also reads braces and numbers, Oniguruma letters.
  void group_by_name() {
    const char close = next(2) == '<' ? '>' : next(2) == '\'' ? '\'' : '\0';
    const std::string_view name = close ? enclosed(2, close) : std::string_view();
    if (bracket_ || name.empty()) refuse_escape();
    for (const char c : name)
      if (!is_word(c) && c != '_') refuse_escape();
    keep(name.size() + 4);
  }

  /// \1 to \9: what a group matched. Other digits are octal; Oniguruma reads bytes of 0200 or more.
  void number() {
    const auto digit = [&](std::size_t i) {
      return std::isdigit(static_cast<unsigned char>(next(i))) != 0;
    };
    if (!bracket_ && next(1) != '0' && !digit(2)) return keep(2);
    std::size_t length = 1;
    std::uint32_t c = 0;
    for (; length <= 3 && is_octal(next(length)); ++length)
      c = 8 * c + static_cast<std::uint32_t>(next(length) - '0');
    if (length == 1 || c > 0x7F || digit(length)) refuse_escape();
    put_code_point(length, c);
  }

  void in_brackets() {
    if (starts("&&")) refuse("&&", "is not supported; rewrite the brackets without intersections");
    if (next() == '[') refuse("[", "is not supported; rewrite the brackets without nested ones");
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
    if (next() == ']') refuse("]", "is not supported as the first character in brackets; use \\]");
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
