#include "base/json.hpp"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/utf8.hpp"

namespace tern {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// A text that the parser would take.
class Refused : public json::exception {
 public:
  explicit Refused(const std::string& why) : exception(0, why.c_str()) {}
};

/// Counts open brackets outside of strings: the same as the parser does, up to the first error.
bool too_deep(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest_json) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

std::string_view shallow(std::string_view text) {
  if (too_deep(text)) throw Refused(fmt::format("nested more than {} levels deep", deepest_json));
  return text;
}

template <class J>
std::string text_of(const J& value, int indent, InvalidUtf8 invalid) {
  return value.dump(
      indent, ' ', false,
      invalid == InvalidUtf8::replaced ? J::error_handler_t::replace : J::error_handler_t::strict);
}

}  // namespace

json parse_json(std::string_view text) { return json::parse(shallow(text)); }
ordered_json parse_ordered_json(std::string_view text) {
  return ordered_json::parse(shallow(text));
}
json parse_json_of_distinct_keys(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw Refused(fmt::format("the key '{}' occurs twice", parsed.get<std::string>()));
    return true;
  };
  return json::parse(shallow(text), watch);
}
json try_json(std::string_view text) {
  return too_deep(text) ? json(json::value_t::discarded) : json::parse(text, nullptr, false);
}
ordered_json try_ordered_json(std::string_view text) {
  return too_deep(text) ? ordered_json(ordered_json::value_t::discarded)
                        : ordered_json::parse(text, nullptr, false);
}

std::string reason(const json::exception& error) { return excerpt(error.what(), 200); }

std::string json_text(const json& value, int indent, InvalidUtf8 invalid) {
  return text_of(value, indent, invalid);
}
std::string json_text(const ordered_json& value, int indent, InvalidUtf8 invalid) {
  return text_of(value, indent, invalid);
}

}  // namespace tern
