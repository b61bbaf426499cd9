/// Quick hashes and checksums, not cryptographic ones.
#pragma once
#include <cstdint>
#include <string_view>

namespace tern {

/// CRC-32C (Castagnoli), as in RFC 3720 appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

/// FNV-1a (Fowler, Noll and Vo), 64 bits.
class Fnv {
 public:
  constexpr Fnv& add(std::string_view bytes) {
    for (const char byte : bytes) add_word(static_cast<unsigned char>(byte));
    return *this;
  }
  /// As if a byte had more bits.
  constexpr Fnv& add_word(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x100000001b3u;
    return *this;
  }
  constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace tern
