/// Chat templates and their tokens.
#include <algorithm>

#include "base/error.hpp"
#include "text/chat.hpp"

namespace tern::text {
namespace {

constexpr std::string_view turn_start = "<|im_start|>", turn_end = "<|im_end|>",
                           end_of_text = "<|endoftext|>", think_start = "<think>",
                           think_end = "</think>", no_thoughts = "<think>\n\n</think>\n\n";

std::string_view without_leading(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  return text;
}

std::string_view without_trailing(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

/// Parts of an answer.
struct Answer {
  std::string_view thoughts, content;
};

/// Thoughts are a separate field, or precede </think> in the content.
Answer answer_of(const Message& message) {
  Answer answer{{}, message.content};
  if (message.reasoning) return {*message.reasoning, message.content};
  const std::size_t first = answer.content.find(think_end);
  if (first == std::string_view::npos) return answer;
  answer.thoughts = without_trailing(answer.content.substr(0, first));
  const std::size_t start = answer.thoughts.rfind(think_start);
  if (start != std::string_view::npos) answer.thoughts.remove_prefix(start + think_start.size());
  answer.thoughts = without_leading(answer.thoughts);
  const std::size_t last = answer.content.rfind(think_end);
  answer.content = without_leading(answer.content.substr(last + think_end.size()));
  return answer;
}

/// Index of the last question of the user (tool responses are not questions), or messages.size().
std::size_t last_question(const std::vector<Message>& messages) {
  for (std::size_t i = messages.size(); i-- > 0;) {
    const std::string& text = messages[i].content;
    const bool response = text.starts_with("<tool_response>") && text.ends_with("</tool_response>");
    if (messages[i].role == Role::user && !response) return i;
  }
  return messages.size();
}

/// Text of the assistant's turn, between its name and the end marker.
std::string turn_of(const Message& message, bool behind_question, bool last, ChatTemplate form) {
  if (form != ChatTemplate::qwen3) return message.content;
  const Answer answer = answer_of(message);
  if (!behind_question || (!last && answer.thoughts.empty())) return std::string(answer.content);
  return fmt::format("{}\n{}\n{}\n\n{}", think_start,
                     without_leading(without_trailing(answer.thoughts)), think_end,
                     without_leading(answer.content));
}

/// Beginning of the assistant's turn that is given to the model.
std::string beginning(const ChatRules& rules) {
  const bool given = rules.form == ChatTemplate::qwen3 && !rules.thinking;
  return fmt::format("assistant\n{}", given ? no_thoughts : "");
}

void add_text(std::vector<Piece>& pieces, Role role, std::string text, bool learned = false) {
  if (!text.empty()) pieces.push_back({role, std::move(text), false, learned});
}

void add_plain(std::vector<Piece>& pieces, const Message& message) {
  const bool answer = message.role == Role::assistant, learned = answer && message.learned;
  add_text(pieces, message.role, message.content + (answer ? "" : "\n"), learned);
  if (answer) pieces.push_back({message.role, std::string(end_of_text), true, learned});
}

/// A turn between markers. `learns`: learned if it also starts with beginning().
void add_turn(std::vector<Piece>& pieces, Role role, const std::string& turn, bool learns,
              const ChatRules& rules) {
  pieces.push_back({role, std::string(turn_start), true, false});
  const std::string whole = fmt::format("{}\n{}", name_of(role), turn), begin = beginning(rules);
  learns = learns && whole.starts_with(begin);
  add_text(pieces, role, learns ? begin : whole);
  if (learns) add_text(pieces, role, whole.substr(begin.size()), true);
  pieces.push_back({role, std::string(turn_end), true, learns});
  add_text(pieces, role, "\n");
}

std::vector<Piece> pieces_of(const std::vector<Message>& messages, const ChatRules& rules) {
  std::vector<Piece> pieces;
  if (rules.form == ChatTemplate::plain && !messages.empty())
    pieces.push_back({messages.front().role, "", true, false});
  const std::size_t question = last_question(messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    const bool last = i + 1 == messages.size(), answer = message.role == Role::assistant;
    if (rules.form == ChatTemplate::plain)
      add_plain(pieces, message);
    else if (answer)
      add_turn(pieces, message.role, turn_of(message, i > question, last, rules.form),
               message.learned && (rules.form == ChatTemplate::chatml || (last && i > question)),
               rules);
    else
      add_turn(pieces, message.role, message.content, false, rules);
  }
  return pieces;
}

std::int32_t marker_id(const std::string& name, const Tokenizer& tokenizer) {
  const std::int32_t id = name == end_of_text ? tokenizer.end_of_text() : tokenizer.id(name);
  if (id < 0)
    user_error(
        "the tokenizer has no token {}, which the chat template uses; set &data tokenizer to that "
        "of a chat model in this format or one made by ./prepare languages, or set &data "
        "chat_template = 'plain', which trains without markers and is also what --export writes",
        name);
  return id;
}

}  // namespace

ChatRules chat_rules(const std::string& chat_template, bool thinking) {
  if (chat_template == "plain") return {ChatTemplate::plain, false};
  if (chat_template == "chatml") return {ChatTemplate::chatml, false};
  TERN_REQUIRE(chat_template == "qwen3", "chat_template = '{}'", chat_template);
  return {ChatTemplate::qwen3, thinking};
}

std::vector<Piece> written(const Conversation& conversation, const ChatRules& rules) {
  return pieces_of(conversation.messages, rules);
}

std::vector<Piece> generation_prompt(const std::vector<Message>& messages, const ChatRules& rules) {
  std::vector<Piece> pieces = pieces_of(messages, rules);
  for (Piece& piece : pieces) piece.learned = false;
  if (rules.form == ChatTemplate::plain) return pieces;
  pieces.push_back({Role::assistant, std::string(turn_start), true, false});
  add_text(pieces, Role::assistant, beginning(rules));
  return pieces;
}

std::vector<Piece> training_pieces(const Conversation& conversation, const ChatRules& rules) {
  const std::vector<Message>& all = conversation.messages;
  const std::string place = fmt::format("{}: messages[{}]", conversation.place, all.size() - 1);
  if (all.back().role != Role::assistant)
    user_error("{}: is the {}'s; the last message must be the assistant's, since it is learned",
               place, name_of(all.back().role));
  if (all.size() < 2 || all[all.size() - 2].role != Role::user)
    user_error("{}: answers no user message; put one before it", place);
  if (rules.form == ChatTemplate::qwen3 && last_question(all) == all.size())
    user_error(
        "{}: answers no question, since every user message is a <tool_response>; put the question "
        "before it, or set &data chat_template = 'chatml'",
        place);
  std::vector<Piece> pieces = written(conversation, rules);
  if (!all.back().learned) return pieces;
  if (std::none_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.learned; }))
    user_error(
        "{}: contains thinking, but &data thinking = .false.; set thinking = .true., or remove the "
        "thinking",
        place);

  std::vector<Piece> before = generation_prompt({all.begin(), all.end() - 1}, rules);
  const auto same = [](const Piece& a, const Piece& b) {
    return a.role == b.role && a.text == b.text && a.marker == b.marker;
  };
  TERN_REQUIRE(before.size() < pieces.size() &&
                   std::equal(before.begin(), before.end(), pieces.begin(), same),
               "{}: learned after '{}', generated after '{}'", place, text_of(pieces),
               text_of(before));
  return pieces;
}

ChatTokens tokens_of(const std::vector<Piece>& pieces, const Tokenizer& tokenizer) {
  ChatTokens all;
  for (const Piece& piece : pieces) {
    const std::vector<std::int32_t>& before = tokenizer.affixes().before;
    if (piece.marker && piece.text.empty())
      all.tokens.insert(all.tokens.end(), before.begin(), before.end());
    else if (piece.marker)
      all.tokens.push_back(marker_id(piece.text, tokenizer));
    else
      tokenizer.encode(piece.text, all.tokens);
    if (piece.marker && piece.learned) all.ends.push_back(all.tokens.size() - 1);
    all.roles.resize(all.tokens.size(), piece.role);
    all.learned.resize(all.tokens.size(), piece.learned ? 1 : 0);
  }
  return all;
}

std::vector<std::int32_t> answer_ends(const ChatRules& rules, const Tokenizer& tokenizer) {
  std::vector<std::int32_t> ends;
  if (rules.form != ChatTemplate::plain)
    ends.push_back(marker_id(std::string(turn_end), tokenizer));
  if (rules.form == ChatTemplate::plain || tokenizer.end_of_text() >= 0)
    ends.push_back(marker_id(std::string(end_of_text), tokenizer));
  return ends;
}

}  // namespace tern::text
