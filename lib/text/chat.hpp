/// Conversations, and chat templates that turn them into text and tokens.
///
/// Markers such as <|im_start|> are special tokens that only a template writes. The same characters
/// in a message remain plain text.
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
  std::optional<std::string> reasoning = {};  // "reasoning_content" in the file
  bool learned = true;                        // false: "weight": 0 in the file
  bool operator==(const Message&) const = default;
};

struct Conversation {
  std::vector<Message> messages;
  std::string place;  // "file:line", for messages
};

/// Reads files of JSON lines, {"messages": [{"role", "content"}, ...]}, sorted by file name
/// (`patterns`: paths with wildcards); ignores blank lines and other fields of the line, except for
/// tools and functions, which a template would write. Roles are system, user and assistant. A message
/// may have "reasoning_content", and the assistant's "weight": 0 (the answer is not learned) or 1;
/// "name" and "id" are ignored, and any other field that holds something is refused. Throws UserError
/// with file, line and field.
std::vector<Conversation> read_conversations(const std::vector<std::string>& patterns);

/// Parses one such line; `place`: "file:line".
Conversation parse_conversation(std::string_view line, std::string place);

/// Chat templates. Without tools, equal to Transformers' apply_chat_template with
///   chatml  the template of Qwen3's 2507 Instruct models: <|im_start|>ROLE, content, <|im_end|>
///   qwen3   the template of Qwen3's hybrid models: the same, but answers after the last question
///           have a <think> block, and earlier ones lose theirs
///   plain   no markers: the content of each message, followed by a newline (system, user) or the
///           end of text (assistant); the first is preceded by the tokenizer's prefix. A text that is
///           continued (kind = 'causal') is no message, and gets no newline: answer/prompt.hpp
enum class ChatTemplate { plain, chatml, qwen3 };

struct ChatRules {
  ChatTemplate form = ChatTemplate::plain;
  bool thinking = false;  // qwen3: the model writes its thoughts; else it is given an empty block
};

/// Rules from the deck's data.chat_template and data.thinking.
ChatRules chat_rules(const std::string& chat_template, bool thinking);

/// Part of a rendered conversation, encoded separately.
struct Piece {
  Role role;             // of the message
  std::string text;      // name of a marker, or text
  bool marker = false;   // one special token; with an empty name: the tokenizer's prefix
  bool learned = false;  // target of training: an answer and its end token
  bool operator==(const Piece&) const = default;
};

/// Renders the whole conversation. Learned: answers of weight 1 that begin as in
/// generation_prompt(), which are all with plain and chatml, the last one with qwen3.
std::vector<Piece> written(const Conversation& conversation, const ChatRules& rules);

/// Renders the prompt for the next answer.
std::vector<Piece> generation_prompt(const std::vector<Message>& messages, const ChatRules& rules);

/// written() for training. The conversation must end with a question and its answer; what precedes
/// the answer, if it is learned, equals generation_prompt() of the messages before it. Otherwise
/// throws UserError that names the message.
std::vector<Piece> training_pieces(const Conversation& conversation, const ChatRules& rules);

/// Text with markers by name, as from apply_chat_template(tokenize=False).
std::string text_of(const std::vector<Piece>& pieces);

/// Tokens of a conversation, with the role of each and whether it is learned.
struct ChatTokens {
  std::vector<std::int32_t> tokens;
  std::vector<Role> roles;
  std::vector<std::uint8_t> learned;   // 1 or 0
  std::vector<std::size_t> ends = {};  // positions of the end tokens of learned answers
  std::size_t answers = 0;             // of the conversation, learned or not
};

/// Throws UserError if the tokenizer lacks a marker.
ChatTokens tokens_of(const std::vector<Piece>& pieces, const Tokenizer& tokenizer);

/// Tokens that end an answer: the template's end marker, and the end of text. Throws UserError if
/// the tokenizer lacks the marker.
std::vector<std::int32_t> answer_ends(const ChatRules& rules, const Tokenizer& tokenizer);

}  // namespace tern::text
