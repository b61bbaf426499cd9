/// Conversations as rows of supervised training, several conversations in a row.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/source.hpp"
#include "text/chat.hpp"

namespace tern::data {

/// Conversations to learn from as tokens, by `threads` threads. Of the first few, what stands
/// before the last answer must be what generation is prompted with: see require_prefix().
std::vector<text::ChatTokens> training_tokens(const std::vector<text::Conversation>& conversations,
                                              const text::ChatRules& rules,
                                              const text::Tokenizer& tokenizer,
                                              std::size_t threads = 1);

/// That a conversation is learned right behind `prompt`, token for token; InternalError names
/// `place` and the first token that differs.
void require_prefix(const text::ChatTokens& learned, const std::vector<std::int32_t>& prompt,
                    const std::string& place, const text::Tokenizer& tokenizer);

struct ChatRowRules {
  std::size_t positions = 1024;  // T of a row, and the most tokens of a conversation
  bool packing = true;           // several conversations in a row; false: row r is the r-th one
  bool cut = false;              // what is too long keeps its first tokens; false: it is left out
  std::uint64_t seed = 0;        // of the packing
};

/// What did not fit.
struct ChatTruncation {
  std::size_t conversations = 0;
  std::size_t too_long = 0, longest = 0;  // tokens of the longest
  std::size_t cut = 0;                    // of those too long; the others are left out
  std::size_t silent = 0;  // left out since nothing in what is left of them is to be learned
  std::size_t left_out() const { return too_long - cut + silent; }
};

/// A row holds whole conversations one after another (Batch::documents); what is left of it is
/// padding. A position's target is the next token of its conversation where that is to be learned;
/// the last token of a conversation has none, nor has anything a target in another one. The first
/// token of a conversation has nothing to be predicted from and is never learned.
class ChatSource : public Source {
 public:
  /// Packs the conversations: the longer ones first, each into the fullest row that it fits into.
  /// The rows, numbered in a pseudo-random order, are a function of conversations and rules
  /// alone, and the same in each epoch. Throws UserError if none is left.
  ChatSource(std::vector<text::ChatTokens> conversations, const ChatRowRules& rules);

  std::size_t rows() const override { return rows_.size(); }
  void start(Batch& batch) const override;
  void append(std::size_t row, std::size_t at, Batch& batch) const override;
  /// tokens[execution_level]: those learned; data_tokens: all of the conversations.
  Counts counts(std::size_t row) const override;

  std::size_t positions() const { return rules_.positions; }
  /// Share of all rows' positions that conversations stand on.
  double fill() const;
  /// Share of the conversations' tokens that is learned.
  double learned() const;
  const ChatTruncation& truncation() const { return truncation_; }
  /// In the order of the constructor's list, cut as they stand in rows.
  const std::vector<text::ChatTokens>& conversations() const { return conversations_; }
  /// The numbers of a row's conversations, in their order in the row.
  const std::vector<std::size_t>& conversations_of(std::size_t row) const;

 private:
  void fit();
  void make_rows();

  ChatRowRules rules_;
  std::vector<text::ChatTokens> conversations_;  // none of those left out has tokens
  std::vector<std::vector<std::size_t>> rows_;
  ChatTruncation truncation_;
  std::size_t tokens_ = 0, learned_ = 0;  // of all rows
};

}  // namespace tern::data
