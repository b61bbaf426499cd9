/// UTF-8, and the classes of code points used in pre-tokenizer patterns.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tern::text {

/// Length in bytes (1 to 4) of the well-formed UTF-8 sequence (Unicode 15, table 3-7) at the start
/// of `text`, or 0 if there is none (overlong forms, surrogates, values above U+10FFFF).
std::size_t utf8_length(std::string_view text);

/// Length of the longest prefix of `text` that is valid UTF-8.
std::size_t valid_utf8_prefix(std::string_view text);

/// Code point of the well-formed sequence at `p`; advances `p` past it.
inline std::uint32_t next_code_point(const char*& p) {
  const auto byte = [&](int i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return p += 1, lead;
  if (lead < 0xe0) {
    const std::uint32_t c = (lead & 0x1f) << 6 | (byte(1) & 0x3f);
    return p += 2, c;
  }
  if (lead < 0xf0) {
    const std::uint32_t c = (lead & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    return p += 3, c;
  }
  const std::uint32_t c =
      (lead & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  return p += 4, c;
}

void append_utf8(std::uint32_t code_point, std::string& text);

/// Class of a code point: \s, \p{L}, \p{N}, or `other`.
enum class CharClass : std::uint8_t { other, letter, number, space };

/// Class of every code point, consistent with portable_pattern().
class CharClasses {
 public:
  static const CharClasses& instance();
  CharClass operator[](std::uint32_t code_point) const { return table_[code_point]; }

 private:
  CharClasses();
  std::vector<CharClass> table_;
};

}  // namespace tern::text
