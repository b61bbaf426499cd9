/// Conversations, and the text of them that a chat model reads.
///
/// Markers such as <|im_start|> are tokens of their own: only a template writes them. The same
/// characters in somebody's message are plain text and stay so.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace tern::text {

enum class Role : std::uint8_t { system, user, assistant };
const char* name_of(Role role);

struct Message {
  Role role;
  std::string content;
  std::optional<std::string> reasoning;  // "reasoning_content" of the file
  bool operator==(const Message&) const = default;
};

struct Conversation {
  std::vector<Message> messages;
  std::string place;  // "file:line", for messages
};

/// Reads files of JSON lines, {"messages": [{"role", "content"}, ...]}, in the order of the files'
/// names (`patterns`: paths with wildcards); blank lines and other fields are ignored. Roles are
/// system, user and assistant. Throws UserError with file, line and field.
std::vector<Conversation> read_conversations(const std::vector<std::string>& patterns);

/// One such line.
Conversation parse_conversation(std::string_view line, std::string place);

/// How a conversation is written. Without tools, equal to Transformers' apply_chat_template with
/// `chatml`  the template of Qwen3's 2507 Instruct models: <|im_start|>ROLE, the content,
/// <|im_end|> `qwen3`   the template of Qwen3's hybrid models: the same, but answers behind the
/// last question
///           have a <think> block, and earlier ones lose theirs
/// `plain`   for models without markers: the content of each message, then a new line behind a
///           system's or user's, or the end of text behind an assistant's; before the first, what
///           the tokenizer has before a text
enum class ChatTemplate { plain, chatml, qwen3 };

struct ChatRules {
  ChatTemplate form = ChatTemplate::plain;
  bool thinking = false;  // qwen3: the model is to write its thoughts; else they are given, empty
};

/// Of the deck's data.chat_template and data.thinking.
ChatRules chat_rules(const std::string& chat_template, bool thinking);

/// A stretch of a written conversation. Each is encoded by itself.
struct Piece {
  Role role;             // of the message
  std::string text;      // a marker's name, or text
  bool marker = false;   // one token, whatever characters its name has; without one: the beginning
  bool learned = false;  // what the model is to write: an answer and the token that ends it
  bool operator==(const Piece&) const = default;
};

/// The whole conversation. Learned are the answers whose beginning is that of generation:
/// with `plain` and `chatml` all, with `qwen3` the last one.
std::vector<Piece> written(const Conversation& conversation, const ChatRules& rules);

/// The conversation as the model is given it to write the next answer.
std::vector<Piece> generation_prompt(const std::vector<Message>& messages, const ChatRules& rules);

/// The same as written() for a conversation to learn from: it must end with an answer behind a
/// question, and what stands before the answer is what generation_prompt() gives for the messages
/// before it. Throws UserError that names the message where the data cannot be that.
std::vector<Piece> training_pieces(const Conversation& conversation, const ChatRules& rules);

/// Markers by their names: what apply_chat_template(tokenize=False) gives.
std::string text_of(const std::vector<Piece>& pieces);

/// Tokens of a conversation, with what each belongs to.
struct ChatTokens {
  std::vector<std::int32_t> tokens;
  std::vector<Role> roles;
  std::vector<std::uint8_t> learned;  // 1 or 0
};

/// Throws UserError if the tokenizer lacks a marker.
ChatTokens tokens_of(const std::vector<Piece>& pieces, const Tokenizer& tokenizer);

/// The tokens that end an answer: the marker that the template puts there, and the end of text.
/// Throws UserError if the tokenizer has not the former.
std::vector<std::int32_t> answer_ends(const ChatRules& rules, const Tokenizer& tokenizer);

}  // namespace tern::text
