/// From what a model wrote to the answer that is kept of it.
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
  std::vector<std::string> stop;  // texts that end an answer
};

/// An answer, or why there is none.
struct ReadAnswer {
  std::string text;    // the answer, or all that was written
  std::string reject;  // empty for a good answer, else its kind: "pattern", "cut", "thoughts", ...
  std::string reason;  // the same in a sentence
};

class AnswerReader {
 public:
  /// UserError for a pattern that PCRE2 does not take and for an empty stop text.
  explicit AnswerReader(const AnswerRules& rules);
  ~AnswerReader();

  /// Most bytes of a stop text; 0 if there are none.
  std::size_t longest_stop() const { return longest_stop_; }
  /// Whether a stop text stands in `text`.
  bool stops(std::string_view text) const;

  /// Takes thoughts (with data.thinking: up to </think>), a stop text and what follows it, and the
  /// blanks around it from what was written. If it then matches the pattern, the answer is the
  /// pattern's first group, or all of it where the pattern has none. `cut`: the model would have
  /// gone on; such an answer is good only if there is a pattern and it matches.
  ReadAnswer read(std::string_view written, bool cut) const;

 private:
  struct Pattern;
  AnswerRules rules_;
  std::size_t longest_stop_ = 0;
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace tern::answer
