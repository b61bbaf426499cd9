/// Extracts the answer from a model's output.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat.hpp"

namespace tern::answer {

struct AnswerRules {
  text::ChatRules chat;
  std::string pattern;            // PCRE2; empty: any answer is good
  std::vector<std::string> stop;  // stop texts
  bool continues = false;         // texts that are continued: see read()
};

/// An answer, or the reason why there is none.
struct ReadAnswer {
  std::string text;    // the answer, or the whole output if rejected
  std::string reject;  // empty for a good answer, else the kind: "pattern", "cut", "thoughts", ...
  std::string reason;  // the same in a sentence
};

class AnswerReader {
 public:
  /// Throws UserError for an invalid PCRE2 pattern and for an empty stop text.
  explicit AnswerReader(const AnswerRules& rules);
  ~AnswerReader();

  /// Bytes of the longest stop text; 0 if there are none.
  std::size_t longest_stop() const { return longest_stop_; }
  /// Whether `text` contains a stop text.
  bool stops(std::string_view text) const;

  /// Strips thoughts (with data.thinking: up to </think>), the first stop text and all after it,
  /// and surrounding blanks. If the rest matches the pattern, the answer is the pattern's first
  /// group, or the whole rest if the pattern has none. `cut`: generation reached max_tokens; such
  /// an answer is good only if there is a pattern and it matches. A continued text ends there as
  /// well if the deck has neither pattern nor stop texts, without the bytes of an incomplete
  /// character; without a pattern it keeps its blanks and may be empty.
  ReadAnswer read(std::string_view written, bool cut) const;

 private:
  struct Pattern;
  AnswerRules rules_;
  std::size_t longest_stop_ = 0;
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace tern::answer
