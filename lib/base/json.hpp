/// JSON is read and written by nlohmann's library, whose parser and writer are compiled here, once:
/// seconds in every source that calls the library's own parse() or dump().
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tern {

/// Members in the order of their names, or (ordered) as they were written. Throw
/// nlohmann::json::parse_error.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// The same, but is_discarded() where `text` is not JSON.
nlohmann::json try_json(std::string_view text);
nlohmann::ordered_json try_ordered_json(std::string_view text);

/// What is wrong with a text, without the whole of what was read last: that may be very long.
std::string reason(const nlohmann::json::exception& error);

/// What is done about a string that is not UTF-8: nlohmann::json::type_error, or U+FFFD in its
/// place.
enum class InvalidUtf8 { refused, replaced };

/// On one line, or with `indent` spaces a level.
std::string json_text(const nlohmann::json& value, int indent = -1,
                      InvalidUtf8 invalid = InvalidUtf8::refused);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1,
                      InvalidUtf8 invalid = InvalidUtf8::refused);

}  // namespace tern
