/// Patterns of tokenizers, as PCRE2 is to read them.
#pragma once
#include <string>
#include <string_view>

namespace tern::text::detail {

/// A pattern for PCRE2 that means what `pattern` means to Oniguruma (in Ruby's syntax, as Hugging
/// Face's tokenizers have it) and to tiktoken, on every machine: ^ and $ are at every line, \h a
/// hexadecimal digit, \v a vertical tab, (?m) has the dot match new lines, {,n} begins at 0; \s is
/// the property White_Space (PCRE2's own has U+180E as well); letters and numbers are those of
/// Unicode 16 or of the library, whichever is newer (PCRE2 10.42 has Unicode 14). What has another
/// meaning here and no translation is a UserError that names it: && and nested brackets, \b, \K,
/// \W, POSIX brackets, {n}?, {n,m}+, verbs and the like.
std::string portable_pattern(std::string_view pattern);

}  // namespace tern::text::detail
