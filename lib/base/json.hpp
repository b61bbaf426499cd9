/// Wrappers of nlohmann::json that compile its parser and writer once: parse() and dump() take
/// seconds to compile in each source that calls them.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tern {

/// Levels of arrays and objects: copying, comparing and writing a value take stack for each. Text
/// nested deeper is refused by all parsers below.
inline constexpr int deepest_json = 100;

/// Members sorted by name, or (ordered) in the order written. Throw nlohmann::json::exception, whose
/// reason() is for the message.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);
/// The same; an object with a key twice is refused as well.
nlohmann::json parse_json_of_distinct_keys(std::string_view text);

/// The same, but the result is_discarded() if `text` is not JSON.
nlohmann::json try_json(std::string_view text);
nlohmann::ordered_json try_ordered_json(std::string_view text);

/// The parser's message, shortened: it quotes the last token read, which may be very long.
std::string reason(const nlohmann::json::exception& error);

/// Strings that are not UTF-8: throw nlohmann::json::type_error, or substitute U+FFFD.
enum class InvalidUtf8 { refused, replaced };

/// On one line, or indented by `indent` spaces per level.
std::string json_text(const nlohmann::json& value, int indent = -1,
                      InvalidUtf8 invalid = InvalidUtf8::refused);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1,
                      InvalidUtf8 invalid = InvalidUtf8::refused);

}  // namespace tern
