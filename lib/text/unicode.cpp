#include "text/unicode.hpp"

#include <string>

#include "text/detail/portable_pattern.hpp"
#include "text/detail/regex.hpp"

namespace tern::text {
namespace {

constexpr std::uint32_t code_points = 0x110000;

}  // namespace

/// Matches all code points with PCRE2 once, so that this table and the patterns agree.
CharClasses::CharClasses() : table_(code_points, CharClass::other) {
  std::string all;
  for (std::uint32_t c = 0; c < code_points; ++c)
    if (c < 0xd800 || c > 0xdfff) append_utf8(c, all);
  const auto mark = [&](const std::string& pattern, CharClass type) {
    detail::Regex(detail::portable_pattern(pattern))
        .for_each_match(all, [&](std::size_t first, std::size_t last) {
          for (const char* p = all.data() + first; p < all.data() + last;)
            table_[next_code_point(p)] = type;
        });
  };
  mark("\\p{L}+", CharClass::letter);
  mark("\\p{N}+", CharClass::number);
  mark("\\s+", CharClass::space);
}

const CharClasses& CharClasses::instance() {
  static const CharClasses classes;
  return classes;
}

}  // namespace tern::text
