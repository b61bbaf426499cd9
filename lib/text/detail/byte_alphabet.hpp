/// The characters that byte-level vocabularies write bytes as (bytes_to_unicode in openai/gpt-2's
/// src/encoder.py): printable Latin-1 characters stand for themselves, the other bytes, in order,
/// for U+0100, U+0101, ...
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tern::text::detail {

/// The characters of `bytes`, as UTF-8.
std::string to_byte_alphabet(std::string_view bytes);

/// The bytes that `characters` stand for; nothing if one of them stands for none.
std::optional<std::string> from_byte_alphabet(std::string_view characters);

}  // namespace tern::text::detail
