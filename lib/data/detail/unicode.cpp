#include "data/detail/unicode.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "data/detail/regex.hpp"

namespace tern::data::detail {
namespace {

constexpr std::uint32_t code_points = 0x110000;

// Insides of bracket expressions.
constexpr std::string_view white_space =
    "\\t-\\r "
    "\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
// What Unicode 15 to 16 have added.
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

std::string portable_pattern(std::string_view pattern) {
  const std::pair<std::string_view, std::string_view> classes[] = {
      {"\\s", white_space}, {"\\p{L}", letters}, {"\\p{N}", numbers}};
  std::string result;
  bool bracket = false;
  while (!pattern.empty()) {
    std::size_t length = pattern.front() == '\\' && pattern.size() > 1 ? 2 : 1;
    std::string replacement(pattern.substr(0, length));
    for (const auto& [name, inside] : classes) {
      if (!pattern.starts_with(name)) continue;
      length = name.size();
      replacement = bracket ? std::string(inside) : fmt::format("[{}]", inside);
    }
    if (replacement == "\\S" && !bracket) replacement = fmt::format("[^{}]", white_space);
    if (replacement == "[") bracket = true;
    if (replacement == "]") bracket = false;
    result += replacement;
    pattern.remove_prefix(length);
  }
  return result;
}

/// Asks PCRE2 once, over a text of all code points, so that this table and the patterns agree.
CharClasses::CharClasses() : table_(code_points, CharClass::other) {
  std::string all;
  for (std::uint32_t c = 0; c < code_points; ++c)
    if (c < 0xd800 || c > 0xdfff) append_utf8(c, all);
  const auto mark = [&](const std::string& pattern, CharClass type) {
    Regex(portable_pattern(pattern)).for_each_match(all, [&](std::size_t first, std::size_t last) {
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

}  // namespace tern::data::detail
