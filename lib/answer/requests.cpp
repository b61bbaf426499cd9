#include "answer/requests.hpp"

#include <fmt/ranges.h>

#include <unordered_map>

#include "base/error.hpp"
#include "base/lines.hpp"
#include "base/mapped_file.hpp"
#include "base/utf8.hpp"

namespace tern::answer {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view text_place = "{text}";

/// Optional field of an object.
ordered_json field(const ordered_json& object, const char* name, const std::string& place) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return nullptr;
  if (!found->is_string() && !found->is_number() && !found->is_boolean())
    user_error("{}: \"{}\" is {}, not a string or a number", place, name,
               excerpt(json_text(*found), 40));
  return *found;
}

ChatRequest request_of(std::string_view line, const std::string& place) {
  ordered_json object;
  try {
    object = parse_ordered_json(line);
  } catch (const nlohmann::json::exception& error) {
    user_error("{}: the line is not JSON: {}", place, reason(error));
  }
  if (!object.is_object()) user_error("{}: the line is not a JSON object", place);
  const auto text = object.find("text");
  if (text == object.end() || !text->is_string())
    user_error("{}: the object has no string \"text\"; a request is {{\"text\": ...}}", place);
  return {*text, field(object, "id", place), field(object, "label", place)};
}

}  // namespace

std::vector<ChatRequest> read_requests(const std::filesystem::path& path) {
  LineReader reader(path);
  const bool json = holds_json_lines(path);
  std::vector<ChatRequest> requests;
  std::unordered_map<std::string, std::size_t> lines;  // by id
  for (const Line& line : reader) {
    if (line.blank()) continue;
    const std::string place = reader.place(line);
    std::string_view text = line.text;
    if (valid_utf8_prefix(text) != text.size())
      user_error("{}: the line is not valid UTF-8", place);
    if (!json && text.ends_with('\r')) text.remove_suffix(1);
    requests.push_back(json ? request_of(text, place) : ChatRequest{std::string(text), {}, {}});
    if (requests.back().id.is_null()) requests.back().id = line.number;
    const auto [other, fresh] = lines.emplace(plain_text(requests.back().id), line.number);
    if (!fresh)
      user_error("{}: id {} is also that of line {}; give each request its own id", place,
                 other->first, other->second);
  }
  if (requests.empty()) user_error("{}: the file contains no requests", path.string());
  return requests;
}

std::string plain_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

PromptTemplate::PromptTemplate(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::string_view text = file.text();
  if (valid_utf8_prefix(text) != text.size())
    user_error("{}: the prompt is not valid UTF-8", path.string());
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (std::size_t at; (at = text.find(text_place)) != text.npos;) {
    parts_.emplace_back(text.substr(0, at));
    text.remove_prefix(at + text_place.size());
  }
  if (parts_.empty())
    user_error("{}: the template has no placeholder {} for a request's text; add it", path.string(),
               text_place);
  parts_.emplace_back(text);
}

std::string PromptTemplate::fill(std::string_view text) const {
  return fmt::format("{}", fmt::join(parts_, text));
}

}  // namespace tern::answer
