#include "text/chat.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/excerpt.hpp"
#include "base/json.hpp"
#include "base/lines.hpp"
#include "base/mapped_file.hpp"
#include "base/wildcards.hpp"

namespace tern::text {
namespace {

using nlohmann::json;

constexpr std::array role_names{"system", "user", "assistant"};

std::string names_in(const json& object) {
  std::string names;
  for (const auto& [name, value] : object.items())
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", excerpt(name));
  return names.empty() ? "nothing" : excerpt(names, 400);
}

const std::string& string_field(const json& message, const char* name, const std::string& place) {
  const auto found = message.find(name);
  if (found == message.end())
    user_error("{}: has no \"{}\" but {}; a message is {{\"role\", \"content\"}}", place, name,
               names_in(message));
  if (!found->is_string())
    user_error("{}.{}: is {}; write it as a string", place, name, excerpt(json_text(*found), 40));
  return found->get_ref<const std::string&>();
}

Role role_of(const std::string& name, const std::string& place) {
  for (std::size_t i = 0; i < role_names.size(); ++i)
    if (name == role_names[i]) return static_cast<Role>(i);
  user_error("{}.role: '{}' is not system, user or assistant; leave such messages out", place,
             excerpt(name));
}

Message message_of(const json& object, const std::string& place) {
  if (!object.is_object()) user_error("{}: is not a JSON object", place);
  for (const char* unsupported : {"tool_calls", "images"})
    if (object.contains(unsupported) && !object[unsupported].empty())
      user_error("{}.{}: is not supported; leave such conversations out", place, unsupported);
  Message message{role_of(string_field(object, "role", place), place),
                  string_field(object, "content", place),
                  {}};
  const auto reasoning = object.find("reasoning_content");
  if (reasoning != object.end() && !reasoning->is_null())
    message.reasoning = string_field(object, "reasoning_content", place);
  return message;
}

}  // namespace

const char* name_of(Role role) { return role_names[static_cast<std::size_t>(role)]; }

Conversation parse_conversation(std::string_view line, std::string place) {
  json object;
  try {
    object = parse_json(line);
  } catch (const json::exception& error) {
    user_error("{}: the line is not JSON: {}", place, reason(error));
  }
  if (!object.is_object()) user_error("{}: the line is not a JSON object", place);
  const auto messages = object.find("messages");
  if (messages == object.end())
    user_error(
        "{}: the object has no \"messages\" but {}; a conversation is {{\"messages\": "
        "[{{\"role\": \"user\", \"content\": ...}}, ...]}}",
        place, names_in(object));
  if (!messages->is_array() || messages->empty())
    user_error("{}: \"messages\" is not a list of one message or more", place);
  Conversation conversation{{}, std::move(place)};
  for (std::size_t i = 0; i < messages->size(); ++i)
    conversation.messages.push_back(
        message_of((*messages)[i], fmt::format("{}: messages[{}]", conversation.place, i)));
  return conversation;
}

std::vector<Conversation> read_conversations(const std::vector<std::string>& patterns) {
  std::vector<Conversation> conversations;
  for (const auto& path : expand_wildcards(
           patterns, "file of conversations",
           "give JSON lines of {\"messages\": [...]}, or make some with ./prepare languages")) {
    const MappedFile file(path);
    const std::size_t before = conversations.size();
    std::string_view text = file.text();
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = trimmed(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!line.empty())
        conversations.push_back(
            parse_conversation(line, fmt::format("{}:{}", path.string(), number)));
    }
    if (conversations.size() == before)
      user_error("{}: the file holds no conversations", path.string());
  }
  return conversations;
}

std::string text_of(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += piece.text;
  return text;
}

}  // namespace tern::text
