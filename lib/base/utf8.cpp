#include "base/utf8.hpp"

#include <fmt/format.h>

#include <cstring>

namespace tern {
namespace {

bool continues(std::string_view text, std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
  if (i >= text.size()) return false;
  const unsigned byte = static_cast<unsigned char>(text[i]);
  return byte >= low && byte <= high;
}

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

std::string escaped(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text), bytes = length == 0 ? 1 : length;
    const char* at = text.data();
    const std::uint32_t code = length == 0 ? 0 : next_code_point(at);
    const bool plain = text[0] == '\n' || text[0] == '\t' || text.starts_with("\r\n");
    if (lines && plain)
      out += text[0];
    else if (code == '\n' || code == '\t' || (code == '\r' && !lines))
      out += code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r";
    else if (length == 0 || is_control(code))
      for (std::size_t i = 0; i < bytes; ++i)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    else
      out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
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

std::string printable(std::string_view text) { return escaped(text, true); }
std::string on_one_line(std::string_view text) { return escaped(text, false); }

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.size() <= most) return on_one_line(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0u) == 0x80u) --most;
  return on_one_line(text.substr(0, most)) + "...";
}

}  // namespace tern
