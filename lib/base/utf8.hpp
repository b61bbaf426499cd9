/// UTF-8 text: its characters, and how messages show it on a terminal and in the log.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tern {

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

/// `text` with control characters and bytes that are not UTF-8 as \xNN, so that no text moves the
/// cursor or changes what is shown. Line ends and tabs stay.
std::string printable(std::string_view text);

/// The same for a name or a quotation: line ends and tabs are written as \n, \r and \t.
std::string on_one_line(std::string_view text);

/// `text` on one line, truncated after about `most` bytes with "..."; never splits a UTF-8 character.
std::string excerpt(std::string_view text, std::size_t most = 80);

}  // namespace tern
