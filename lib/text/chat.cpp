#include "text/chat.hpp"

#include <array>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/lines.hpp"
#include "base/utf8.hpp"
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
    user_error("{}.{}: is {}, not a string; make it one", place, name,
               excerpt(json_text(*found), 40));
  return found->get_ref<const std::string&>();
}

Role role_of(const std::string& name, const std::string& place) {
  for (std::size_t i = 0; i < role_names.size(); ++i)
    if (name == role_names[i]) return static_cast<Role>(i);
  user_error("{}.role: '{}' is not system, user or assistant; remove such messages", place,
             excerpt(name));
}

/// Whether a field says nothing: null, false, or an empty text, list or object.
bool is_void(const json& value) {
  return value.empty() || value == false || (value.is_string() && value == "");
}

/// Fields that are not read could change what the conversation means.
void require_known(const json& message, const std::string& place) {
  for (const auto& [name, value] : message.items()) {
    bool known = is_void(value);
    for (const char* field : {"role", "content", "reasoning_content", "weight", "name", "id"})
      known = known || name == field;
    if (!known)
      user_error(
          "{}.{}: is not supported: a message has \"role\" and \"content\", and may have "
          "\"reasoning_content\" and \"weight\"; remove this field, or such conversations",
          place, name);
  }
}

/// OpenAI's weight of an answer.
bool learned(const json& message, Role role, const std::string& place) {
  const auto weight = message.find("weight");
  if (weight == message.end() || weight->is_null()) return true;
  if (*weight != 0 && *weight != 1)
    user_error("{}.weight: is {}; set 1 to learn the answer, or 0", place,
               weight->dump().substr(0, 40));
  if (role != Role::assistant && *weight == 1)
    user_error("{}.weight: is 1, but only the assistant's messages are learned; remove it", place);
  return *weight == 1;
}

Message message_of(const json& object, const std::string& place) {
  if (!object.is_object()) user_error("{}: is not a JSON object", place);
  Message message{role_of(string_field(object, "role", place), place),
                  string_field(object, "content", place)};
  require_known(object, place);
  const auto reasoning = object.find("reasoning_content");
  if (reasoning != object.end() && !reasoning->is_null())
    message.reasoning = string_field(object, "reasoning_content", place);
  message.learned = learned(object, message.role, place);
  return message;
}

/// Why a file of answers holds none, if the file of those that were rejected is next to it.
std::string rejects_beside(const std::filesystem::path& path) {
  std::filesystem::path rejects = path;
  rejects.replace_filename(path.stem().string() + "_rejects" + path.extension().string());
  if (!std::filesystem::exists(rejects)) return "";
  return fmt::format(": all answers were rejected; {} has the reason for each", rejects.string());
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
  for (const char* unsupported : {"tools", "functions"})
    if (object.contains(unsupported) && !is_void(object[unsupported]))
      user_error("{}: \"{}\" is not supported by any chat template; remove such conversations",
                 place, unsupported);
  if (!messages->is_array() || messages->empty())
    user_error("{}: \"messages\" is not a list of at least one message", place);
  Conversation conversation{{}, std::move(place)};
  for (std::size_t i = 0; i < messages->size(); ++i)
    conversation.messages.push_back(
        message_of((*messages)[i], fmt::format("{}: messages[{}]", conversation.place, i)));
  return conversation;
}

std::vector<Conversation> read_conversations(const std::vector<std::string>& patterns) {
  std::vector<Conversation> conversations;
  for (const auto& path : expand_wildcards(patterns, "file of conversations",
                                           "provide JSON lines of {\"messages\": [...]}, or make "
                                           "some with ./prepare languages")) {
    LineReader lines(path);
    const std::size_t before = conversations.size();
    for (const Line& line : lines)
      if (!line.blank())
        conversations.push_back(parse_conversation(trimmed(line.text), lines.place(line)));
    if (conversations.size() == before)
      user_error("{}: the file contains no conversations{}", path.string(), rejects_beside(path));
  }
  return conversations;
}

std::string text_of(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += piece.text;
  return text;
}

}  // namespace tern::text
