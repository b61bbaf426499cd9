#include "data/chat_source.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/parallel.hpp"
#include "data/detail/packing.hpp"

namespace tern::data {
namespace {

/// Number of learned tokens, without the first of the conversation.
std::size_t learned_tokens(const text::ChatTokens& chat) {
  if (chat.learned.empty()) return 0;
  return static_cast<std::size_t>(
      std::count_if(chat.learned.begin() + 1, chat.learned.end(), [](auto l) { return l != 0; }));
}

void resize(text::ChatTokens& chat, std::size_t tokens) {
  chat.tokens.resize(tokens);
  chat.learned.resize(tokens);
  chat.roles.resize(tokens);
}

/// Number of conversations whose prefix is checked.
constexpr std::size_t compared = 64;

std::string spelled(const std::vector<std::int32_t>& tokens, std::size_t at,
                    const text::Tokenizer& tokenizer) {
  if (at >= tokens.size()) return "nothing";
  return fmt::format("{} '{}'", tokens[at], tokenizer.decode({tokens[at]}));
}

/// Text of a token in quotes, on one line; its bytes if it is part of a character.
std::string piece_of(std::int32_t token, const text::Tokenizer& tokenizer) {
  const std::string bytes = tokenizer.decode({token});
  try {
    return json_text(nlohmann::json(bytes));
  } catch (const nlohmann::json::exception&) {
    std::string text;
    for (const char c : bytes) text += fmt::format("<{:02x}>", static_cast<unsigned char>(c));
    return text;
  }
}

/// Lines of a conversation in the batch; a token is learned if it is the target of a position.
std::string lines_of(const Batch& batch, const Document& document, std::size_t conversation,
                     const text::ChatTokens& chat, const text::Tokenizer& tokenizer) {
  std::string text;
  for (std::size_t i = 0; i < document.tokens; ++i) {
    const std::size_t at = document.row * batch.tokens_per_sequence + document.begin + i;
    const bool learned = i > 0 && batch.targets[at - 1] >= 0;
    text += fmt::format("{:>8} {:>12} {:>5} {:>7}  {:<9} {}  {}\n", document.begin + i,
                        conversation, i, batch.inputs[at], text::name_of(chat.roles[i]),
                        learned ? "learned" : "   -   ", piece_of(batch.inputs[at], tokenizer));
  }
  return text;
}

}  // namespace

void require_prefix(const text::ChatTokens& learned, const std::vector<std::int32_t>& prompt,
                    const std::string& place, const text::Tokenizer& tokenizer) {
  const auto [at, of_prompt] =
      std::mismatch(learned.tokens.begin(), learned.tokens.end(), prompt.begin(), prompt.end());
  const auto first = static_cast<std::size_t>(of_prompt - prompt.begin());
  TERN_REQUIRE(first == prompt.size(),
               "{}: token {} of the training row is {}, of generation's prompt {}", place, first,
               spelled(learned.tokens, first, tokenizer), spelled(prompt, first, tokenizer));
  TERN_REQUIRE(first < learned.tokens.size() && learned.learned[first] != 0,
               "{}: token {} ({}) follows generation's prompt, and is not learned", place, first,
               spelled(learned.tokens, first, tokenizer));
}

std::vector<text::ChatTokens> training_tokens(const std::vector<text::Conversation>& conversations,
                                              const text::ChatRules& rules,
                                              const text::Tokenizer& tokenizer,
                                              std::size_t threads) {
  std::vector<text::ChatTokens> all(conversations.size());
  parallel_for(all.size(), threads, [&](std::size_t i) {
    const text::Conversation& conversation = conversations[i];
    all[i] = text::tokens_of(text::training_pieces(conversation, rules), tokenizer);
    all[i].answers = static_cast<std::size_t>(
        std::count_if(conversation.messages.begin(), conversation.messages.end(),
                      [](const auto& m) { return m.role == text::Role::assistant; }));
    if (i >= compared || !conversation.messages.back().learned) return;
    const std::vector<text::Message>& messages = conversation.messages;
    const auto prompt = text::generation_prompt({messages.begin(), messages.end() - 1}, rules);
    require_prefix(all[i], text::tokens_of(prompt, tokenizer).tokens, conversation.place,
                   tokenizer);
  });
  return all;
}

ChatSource::ChatSource(std::vector<text::ChatTokens> conversations, const ChatRowRules& rules)
    : rules_(rules), conversations_(std::move(conversations)) {
  TERN_REQUIRE(rules.positions > 0);
  if (conversations_.empty()) user_error("there are no conversations to train on");
  fit();
  const ChatTruncation& t = truncation_;
  if (t.left_out() == t.conversations)
    user_error(
        "no conversation is left of {}: {} are longer than the {} tokens of a row (the longest has "
        "{}), {} have nothing to learn; raise &model context, set &data too_long = 'cut', or check "
        "that the assistant speaks in them",
        t.conversations, t.too_long, rules_.positions, t.longest, t.without_targets);
  make_rows();
}

/// Truncates or empties conversations that are too long, and empties those without learned tokens.
void ChatSource::fit() {
  for (text::ChatTokens& chat : conversations_) {
    const std::size_t length = chat.tokens.size();
    TERN_REQUIRE(chat.learned.size() == length && chat.roles.size() == length,
                 "{} tokens, {} marks, {} roles", length, chat.learned.size(), chat.roles.size());
    ++truncation_.conversations;
    answers_.all += chat.answers;
    truncation_.longest = std::max(truncation_.longest, length);
    const bool long_one = length > rules_.positions;
    if (long_one) {
      ++truncation_.too_long;
      resize(chat, rules_.cut ? rules_.positions : 0);
      if (!rules_.cut) continue;
      ++truncation_.cut;
    }
    if (learned_tokens(chat) > 0) continue;
    ++truncation_.without_targets;
    resize(chat, 0);
  }
}

void ChatSource::make_rows() {
  std::vector<std::uint32_t> sizes;
  for (const text::ChatTokens& chat : conversations_) {
    sizes.push_back(static_cast<std::uint32_t>(chat.tokens.size()));
    for (const std::size_t end : chat.ends) answers_.learned += end < chat.tokens.size() ? 1 : 0;
    tokens_ += chat.tokens.size();
    learned_ += learned_tokens(chat);
  }
  if (rules_.packing) {
    rows_ = detail::pack(sizes, rules_.positions, rules_.seed);
    return;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 0) rows_.push_back({i});
}

void ChatSource::start(Batch& batch) const {
  batch.inputs.assign(batch.sequences * rules_.positions, 0);
  batch.targets.assign(batch.sequences * rules_.positions, -1);
}

void ChatSource::append(std::size_t row, std::size_t at, Batch& batch) const {
  std::size_t begin = 0;
  for (const std::size_t number : conversations_of(row)) {
    const text::ChatTokens& chat = conversations_[number];
    const std::size_t count = chat.tokens.size(), first = at * rules_.positions + begin;
    std::copy(chat.tokens.begin(), chat.tokens.end(), batch.inputs.data() + first);
    for (std::size_t i = 1; i < count; ++i)
      if (chat.learned[i] != 0) batch.targets[first + i - 1] = chat.tokens[i];
    batch.documents.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(begin),
                               static_cast<std::uint32_t>(count)});
    begin += count;
  }
}

Counts ChatSource::counts(std::size_t row) const {
  Counts counts;
  for (const std::size_t number : conversations_of(row)) {
    counts.tokens[only_level] += static_cast<std::int64_t>(learned_tokens(conversations_[number]));
    counts.data_tokens += static_cast<std::int64_t>(conversations_[number].tokens.size());
    ++counts.samples;
  }
  return counts;
}

std::string ChatSource::show(std::size_t row, std::size_t at, const Batch& batch,
                             const text::Tokenizer& tokenizer) const {
  const std::vector<std::size_t>& numbers = conversations_of(row);
  std::string text = fmt::format("row {}: {} conversations\n", at, numbers.size());
  text += "position conversation place   token  role      learned  text\n";
  auto document = std::find_if(batch.documents.begin(), batch.documents.end(),
                               [&](const Document& each) { return each.row == at; });
  std::size_t used = 0;
  for (const std::size_t number : numbers) {
    TERN_REQUIRE(document != batch.documents.end() && document->row == at, "row {}", at);
    text += lines_of(batch, *document, number, conversations_[number], tokenizer);
    used = (document++)->begin + conversations_[number].tokens.size();
  }
  if (used < batch.tokens_per_sequence)
    text += fmt::format("{:>8} to {}: padding\n", used, batch.tokens_per_sequence - 1);
  return text;
}

double ChatSource::fill() const {
  return static_cast<double>(tokens_) / static_cast<double>(rows() * positions());
}

double ChatSource::learned() const {
  return static_cast<double>(learned_) / static_cast<double>(tokens_);
}

const std::vector<std::size_t>& ChatSource::conversations_of(std::size_t row) const {
  TERN_REQUIRE(row < rows());
  return rows_[row];
}

}  // namespace tern::data
