/// Pre-tokenizers: split text into the pieces within which byte pairs are merged.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tern::text::detail {

/// Immutable and thread-safe.
class Pretokenizer {
 public:
  virtual ~Pretokenizer() = default;
  /// Appends the pieces of `text` (valid UTF-8) in order: non-empty views into it.
  virtual void split(std::string_view text, std::vector<std::string_view>& pieces) const = 0;
};

/// GPT-2's pattern (openai/gpt-2 src/encoder.py), with a hand-written matcher.
std::unique_ptr<Pretokenizer> gpt2_pretokenizer();

/// Whether text between matches of a pattern is kept.
enum class Gaps { keep, remove };

/// Splits into matches of a pattern, in the subset of Oniguruma's or Rust's syntax that
/// portable_pattern() translates, and the text between them.
std::unique_ptr<Pretokenizer> regex_pretokenizer(const std::string& pattern,
                                                 Gaps gaps = Gaps::keep);

/// Each stage splits the pieces of the previous one; without stages, the text is one piece.
std::unique_ptr<Pretokenizer> chain(std::vector<std::unique_ptr<Pretokenizer>> stages);

extern const char* const gpt2_pattern;
/// GPT-4's pattern (cl100k_base of openai/tiktoken).
extern const char* const gpt4_pattern;

}  // namespace tern::text::detail
