/// Translation of tokenizer patterns to PCRE2.
#pragma once
#include <string>
#include <string_view>

namespace tern::text::detail {

/// PCRE2 pattern with the meaning that `pattern` has in Oniguruma (Ruby syntax, as in Hugging Face
/// tokenizers) and in tiktoken, on every machine: ^ and $ match at every line, \h is a hexadecimal
/// digit, \v a vertical tab, (?m) lets the dot match newlines, {,n} starts at 0; \s is the property
/// White_Space (PCRE2's also has U+180E); \p{...} is a general category or a script (property.hpp) of
/// Unicode 16 or of the library, whichever is newer (PCRE2 10.42 has Unicode 14). Throws UserError for
/// syntax that differs and has no translation: &&, nested brackets, \b, \K, \pL, \o{}, \N{}, \u{},
/// \g{}, \k{}, \x of two digits from 80 on, POSIX brackets, {n}?, {n,m}+, verbs and the like.
std::string portable_pattern(std::string_view pattern);

}  // namespace tern::text::detail
