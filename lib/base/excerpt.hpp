/// User text quoted in a message.
#pragma once
#include <string>
#include <string_view>

namespace tern {

/// `text`, truncated after about `most` bytes with "..."; never splits a UTF-8 character.
inline std::string excerpt(std::string_view text, std::size_t most = 80) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0u) == 0x80u) --most;
  return std::string(text.substr(0, most)) + "...";
}

}  // namespace tern
