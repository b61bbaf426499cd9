/// Unicode normalization form C (Unicode Standard Annex 15), for the characters that the installed
/// utf8proc knows (2.8: Unicode 15); later ones are unchanged.
#pragma once
#include <string>
#include <string_view>

namespace tern::text::detail {

/// True if `text` (valid UTF-8) has only characters below U+0300, which are all in form C.
bool is_surely_nfc(std::string_view text);

/// Form C of `text` (valid UTF-8).
std::string to_nfc(std::string_view text);

}  // namespace tern::text::detail
