/// Classes of code points used in pre-tokenizer patterns.
#pragma once
#include <cstdint>
#include <vector>

#include "base/utf8.hpp"

namespace tern::text {

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
