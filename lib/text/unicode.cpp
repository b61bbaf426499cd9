#include "text/unicode.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "text/detail/portable_pattern.hpp"
#include "text/detail/regex.hpp"

namespace tern::text {
namespace {

constexpr std::uint32_t code_points = 0x110000;

bool continues(std::string_view text, std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
  if (i >= text.size()) return false;
  const unsigned byte = static_cast<unsigned char>(text[i]);
  return byte >= low && byte <= high;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return continues(text, 1) ? 2 : 0;
  if (lead < 0xf0) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80, high = lead == 0xed ? 0x9f : 0xbf;
    return continues(text, 1, low, high) && continues(text, 2) ? 3 : 0;
  }
  if (lead > 0xf4) return 0;
  const unsigned low = lead == 0xf0 ? 0x90 : 0x80, high = lead == 0xf4 ? 0x8f : 0xbf;
  return continues(text, 1, low, high) && continues(text, 2) && continues(text, 3) ? 4 : 0;
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    std::uint64_t eight = 0;
    if (i + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + i, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) break;
    i += length;
  }
  return i;
}

void append_utf8(std::uint32_t c, std::string& text) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xc0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xe0 | c >> 12);
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xf0 | c >> 18);
    tail(12), tail(6), tail(0);
  }
}

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
