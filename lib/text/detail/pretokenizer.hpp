/// Cuts text into the pieces within which byte pairs are merged.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tern::text::detail {

/// Immutable; may be used by several threads.
class Pretokenizer {
 public:
  virtual ~Pretokenizer() = default;
  /// Appends the pieces of `text`, which is valid UTF-8, in order; they point into it and are not
  /// empty.
  virtual void split(std::string_view text, std::vector<std::string_view>& pieces) const = 0;
};

/// GPT-2's pattern (openai/gpt-2 src/encoder.py), by a matcher of our own.
std::unique_ptr<Pretokenizer> gpt2_pretokenizer();

/// What becomes of the text between two matches of a pattern.
enum class Gaps { keep, remove };

/// The matches of a pattern in the syntax of Oniguruma or Rust as far as PCRE2 shares it, and the
/// text between them; see portable_pattern().
std::unique_ptr<Pretokenizer> regex_pretokenizer(const std::string& pattern,
                                                 Gaps gaps = Gaps::keep);

/// Each stage splits the pieces of the stage before it; no stages: the text is one piece.
std::unique_ptr<Pretokenizer> chain(std::vector<std::unique_ptr<Pretokenizer>> stages);

extern const char* const gpt2_pattern;
/// GPT-4's (cl100k_base of openai/tiktoken).
extern const char* const gpt4_pattern;

}  // namespace tern::text::detail
