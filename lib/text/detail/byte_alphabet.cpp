#include "text/detail/byte_alphabet.hpp"

#include <array>
#include <cstdint>
#include "base/utf8.hpp"

namespace tern::text::detail {
namespace {

constexpr std::size_t alphabet_end = 256 + 68;  // 68 bytes do not map to themselves

struct Alphabet {
  std::array<std::uint32_t, 256> character;
  std::array<int, alphabet_end> byte;

  Alphabet() {
    byte.fill(-1);
    std::uint32_t next = 256;
    for (std::uint32_t b = 0; b < 256; ++b) {
      const bool itself = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      character[b] = itself ? b : next++;
      byte[character[b]] = static_cast<int>(b);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string result;
  for (const char c : bytes)
    append_utf8(alphabet().character[static_cast<unsigned char>(c)], result);
  return result;
}

std::optional<std::string> from_byte_alphabet(std::string_view characters) {
  if (valid_utf8_prefix(characters) != characters.size()) return std::nullopt;
  std::string result;
  for (const char* p = characters.data(); p < characters.data() + characters.size();) {
    const std::uint32_t c = next_code_point(p);
    const int byte = c < alphabet_end ? alphabet().byte[c] : -1;
    if (byte < 0) return std::nullopt;
    result += static_cast<char>(byte);
  }
  return result;
}

}  // namespace tern::text::detail
