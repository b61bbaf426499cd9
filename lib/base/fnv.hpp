/// FNV-1a (Fowler, Noll and Vo), 64 bits: a quick hash, not a cryptographic one.
#pragma once
#include <cstdint>
#include <string_view>

namespace tern {

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
