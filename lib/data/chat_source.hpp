/// Conversations as rows for supervised training, several per row.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/source.hpp"
#include "text/chat.hpp"

namespace tern::data {

/// Tokenizes conversations for training, with `threads` threads. Checks in the first 64 that the
/// tokens before the last answer equal generation's prompt: see require_prefix().
std::vector<text::ChatTokens> training_tokens(const std::vector<text::Conversation>& conversations,
                                              const text::ChatRules& rules,
                                              const text::Tokenizer& tokenizer,
                                              std::size_t threads = 1);

/// Requires that the conversation begins with `prompt`, token for token, and that the next token is
/// learned. Throws InternalError naming `place` and the first token that differs.
void require_prefix(const text::ChatTokens& learned, const std::vector<std::int32_t>& prompt,
                    const std::string& place, const text::Tokenizer& tokenizer);

struct ChatRowRules {
  std::size_t positions = 1024;  // T of a row, and the maximum length of a conversation
  bool packing = true;           // several conversations per row; false: row r is the r-th one
  bool cut = false;              // truncate long conversations; false: leave them out
  std::uint64_t seed = 0;        // for packing
};

/// Conversations that were cut or left out.
struct ChatTruncation {
  std::size_t conversations = 0;
  std::size_t too_long = 0, longest = 0;  // `longest` in tokens
  std::size_t cut = 0;                    // among the too long ones; the others are left out
  std::size_t without_targets = 0;        // left out: no token to learn (after truncation)
  std::size_t left_out() const { return too_long - cut + without_targets; }
};

/// Answers in all conversations, and those that the rows hold to their end and learn.
struct ChatAnswers {
  std::size_t all = 0, learned = 0;
};

/// A row holds whole conversations (Batch::documents), then padding. The target of a position is
/// the next token of the same conversation if that is to be learned, otherwise none (-1). The first
/// token of a conversation is never learned.
class ChatSource : public Source {
 public:
  /// Packs the conversations by best fit decreasing (detail/packing.hpp). Rows are in pseudo-random
  /// order, a function of conversations and rules only, and the same in each epoch. Throws
  /// UserError if no conversation is left.
  ChatSource(std::vector<text::ChatTokens> conversations, const ChatRowRules& rules);

  std::size_t rows() const override { return rows_.size(); }
  void start(Batch& batch) const override;
  void append(std::size_t row, std::size_t at, Batch& batch) const override;
  /// tokens[only_level]: learned tokens; data_tokens: all tokens of the conversations.
  Counts counts(std::size_t row) const override;
  /// Per position: conversation, place in it, token, role, whether it is learned, text.
  std::string show(std::size_t row, std::size_t at, const Batch& batch,
                   const text::Tokenizer& tokenizer) const override;

  std::size_t positions() const { return rules_.positions; }
  /// Fraction of all rows' positions that hold conversations.
  double fill() const;
  /// Fraction of the conversations' tokens that is learned.
  double learned() const;
  const ChatTruncation& truncation() const { return truncation_; }
  const ChatAnswers& answers() const { return answers_; }
  /// In the order of the constructor's list, truncated as in the rows; empty if left out.
  const std::vector<text::ChatTokens>& conversations() const { return conversations_; }
  /// Numbers of a row's conversations, in their order in the row.
  const std::vector<std::size_t>& conversations_of(std::size_t row) const;

 private:
  void fit();
  void make_rows();

  ChatRowRules rules_;
  std::vector<text::ChatTokens> conversations_;  // without tokens if left out
  std::vector<std::vector<std::size_t>> rows_;
  ChatTruncation truncation_;
  ChatAnswers answers_;
  std::size_t tokens_ = 0, learned_ = 0;  // over all rows
};

}  // namespace tern::data
