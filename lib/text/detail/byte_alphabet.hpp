/// Mapping of bytes to characters in byte-level vocabularies (bytes_to_unicode in openai/gpt-2's
/// src/encoder.py): printable Latin-1 characters map to themselves, other bytes in order to U+0100,
/// U+0101, ...
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tern::text::detail {

/// `bytes` as characters, in UTF-8.
std::string to_byte_alphabet(std::string_view bytes);

/// Bytes of `characters`; nullopt if one of them is not in the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view characters);

}  // namespace tern::text::detail
