/// Character properties as Oniguruma has them, for patterns of PCRE2.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tern::text::detail {

/// A set of characters: the contents of a bracket expression, or their complement.
struct CharacterSet {
  std::string inside;
  bool complement = false;
};

/// Set of \p{NAME}: a general category, a script, or one of the names any, ascii, digit, space,
/// white_space, punct, cntrl and xdigit; in any case, with or without blanks, hyphens and
/// underscores. Characters of Unicode 15 and 16 are included, which PCRE2 before 10.45 does not
/// know. Nothing for other names.
std::optional<CharacterSet> property(std::string_view name);

/// All characters that are not in brackets with these contents, as ranges. Takes some 10 ms.
std::string complement_of(const std::string& inside);

/// \s, \h and \w; \w has superscripts and fractions of Latin-1 outside brackets only.
CharacterSet white_space();
CharacterSet hex_digits();
CharacterSet word_characters(bool in_brackets);

}  // namespace tern::text::detail
