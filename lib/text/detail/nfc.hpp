/// Unicode normalization form C (Unicode Standard Annex 15), for the characters of Unicode 14;
/// later ones are left as they are.
#pragma once
#include <string>
#include <string_view>

namespace tern::text::detail {

/// True if `text` (valid UTF-8) has only characters below U+0300, all of which are in form C
/// already.
bool is_surely_nfc(std::string_view text);

/// Form C of valid UTF-8.
std::string to_nfc(std::string_view text);

}  // namespace tern::text::detail
