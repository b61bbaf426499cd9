#include "base/json.hpp"

#include "base/excerpt.hpp"

namespace tern {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <class J>
std::string text_of(const J& value, int indent, InvalidUtf8 invalid) {
  return value.dump(
      indent, ' ', false,
      invalid == InvalidUtf8::replaced ? J::error_handler_t::replace : J::error_handler_t::strict);
}

}  // namespace

json parse_json(std::string_view text) { return json::parse(text); }
ordered_json parse_ordered_json(std::string_view text) { return ordered_json::parse(text); }
json try_json(std::string_view text) { return json::parse(text, nullptr, false); }
ordered_json try_ordered_json(std::string_view text) {
  return ordered_json::parse(text, nullptr, false);
}

std::string reason(const json::exception& error) { return excerpt(error.what(), 200); }

std::string json_text(const json& value, int indent, InvalidUtf8 invalid) {
  return text_of(value, indent, invalid);
}
std::string json_text(const ordered_json& value, int indent, InvalidUtf8 invalid) {
  return text_of(value, indent, invalid);
}

}  // namespace tern
