#include "text/detail/pretokenizer.hpp"

#include <utility>

#include "text/detail/portable_pattern.hpp"
#include "text/detail/regex.hpp"
#include "text/unicode.hpp"

namespace tern::text::detail {

const char* const gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const char* const gpt4_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

class Gpt2Pretokenizer final : public Pretokenizer {
 public:
  void split(std::string_view text, std::vector<std::string_view>& pieces) const override {
    const char* p = text.data();
    const char* const end = p + text.size();
    while (p < end) {
      const char* const next = piece_end(p, end);
      pieces.emplace_back(p, static_cast<std::size_t>(next - p));
      p = next;
    }
  }

 private:
  CharClass class_at(const char* p, const char*& next) const {
    next = p;
    return classes_[next_code_point(next)];
  }

  /// Length of 's 't 're 've 'm 'll 'd at `p`, or 0.
  static std::size_t contraction(const char* p, const char* end) {
    if (*p != '\'' || end - p < 2) return 0;
    const char a = p[1], b = end - p > 2 ? p[2] : '\0';
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
  }

  const char* run_end(const char* p, const char* end, CharClass type) const {
    for (const char* next = p; p < end && class_at(p, next) == type;) p = next;
    return p;
  }

  const char* piece_end(const char* p, const char* end) const {
    if (const std::size_t length = contraction(p, end)) return p + length;
    const char* next = p;
    CharClass type = class_at(p, next);
    if (*p == ' ' && next < end) {  // " ?": one space may precede a run of any other class
      const char* second = next;
      const CharClass following = class_at(next, second);
      if (following != CharClass::space) return run_end(second, end, following);
    }
    if (type != CharClass::space) return run_end(next, end, type);
    return space_end(p, end);
  }

  /// \s+(?!\S)|\s+: the last of several spaces before a word goes with the word.
  const char* space_end(const char* p, const char* end) const {
    const char *last = p, *next = p;
    const char* q = p;
    while (q < end && class_at(q, next) == CharClass::space) last = std::exchange(q, next);
    return q == end || last == p ? q : last;
  }

  const CharClasses& classes_ = CharClasses::instance();
};

class RegexPretokenizer final : public Pretokenizer {
 public:
  RegexPretokenizer(const std::string& pattern, Gaps gaps)
      : regex_(portable_pattern(pattern)), gaps_(gaps) {}

  void split(std::string_view text, std::vector<std::string_view>& pieces) const override {
    std::size_t done = 0;
    const auto gap = [&](std::size_t until) {
      if (until > done && gaps_ == Gaps::keep) pieces.push_back(text.substr(done, until - done));
    };
    regex_.for_each_match(text, [&](std::size_t first, std::size_t last) {
      gap(first);
      pieces.push_back(text.substr(first, last - first));
      done = last;
    });
    gap(text.size());
  }

 private:
  Regex regex_;
  Gaps gaps_;
};

class Chain final : public Pretokenizer {
 public:
  explicit Chain(std::vector<std::unique_ptr<Pretokenizer>> stages) : stages_(std::move(stages)) {}

  void split(std::string_view text, std::vector<std::string_view>& pieces) const override {
    std::vector<std::string_view> current, next;
    if (!text.empty()) current.push_back(text);
    for (const auto& stage : stages_) {
      next.clear();
      for (const std::string_view piece : current) stage->split(piece, next);
      current.swap(next);
    }
    pieces.insert(pieces.end(), current.begin(), current.end());
  }

 private:
  std::vector<std::unique_ptr<Pretokenizer>> stages_;
};

}  // namespace

std::unique_ptr<Pretokenizer> gpt2_pretokenizer() { return std::make_unique<Gpt2Pretokenizer>(); }

std::unique_ptr<Pretokenizer> regex_pretokenizer(const std::string& pattern, Gaps gaps) {
  if (pattern == gpt2_pattern) return gpt2_pretokenizer();
  return std::make_unique<RegexPretokenizer>(pattern, gaps);
}

std::unique_ptr<Pretokenizer> chain(std::vector<std::unique_ptr<Pretokenizer>> stages) {
  if (stages.size() == 1) return std::move(stages.front());
  return std::make_unique<Chain>(std::move(stages));
}

}  // namespace tern::text::detail
