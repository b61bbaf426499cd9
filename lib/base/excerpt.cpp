#include "base/excerpt.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace tern {
namespace {

/// Bytes of the UTF-8 character at the start of `text` and its code point; 0 bytes: none.
struct Character {
  std::size_t bytes = 0;
  std::uint32_t code = 0;
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {1, byte(0)};
  const std::size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = byte(0) & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least[bytes] || code > 0x10ffff || surrogate) return {};
  return {bytes, code};
}

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

std::string escaped(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_of(text);
    const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    const bool plain = text[0] == '\n' || text[0] == '\t' || text.starts_with("\r\n");
    if (lines && plain)
      out += text[0];
    else if (c.code == '\n' || c.code == '\t' || (c.code == '\r' && !lines))
      out += c.code == '\n' ? "\\n" : c.code == '\t' ? "\\t" : "\\r";
    else if (c.bytes == 0 || is_control(c.code))
      for (std::size_t i = 0; i < bytes; ++i)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    else
      out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, true); }
std::string on_one_line(std::string_view text) { return escaped(text, false); }

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.size() <= most) return on_one_line(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0u) == 0x80u) --most;
  return on_one_line(text.substr(0, most)) + "...";
}

}  // namespace tern
