#define PCRE2_CODE_UNIT_WIDTH 8
#include "answer/answer_reader.hpp"

#include <pcre2.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "base/error.hpp"
#include "base/lines.hpp"
#include "base/utf8.hpp"

namespace tern::answer {
namespace {

constexpr std::string_view thoughts_end = "</think>";

/// Bytes of a character that the end of a text cuts off: at most 3.
std::size_t incomplete_bytes(std::string_view text) {
  const std::string_view rest = text.substr(valid_utf8_prefix(text));
  const unsigned char lead = rest.empty() ? 0 : static_cast<unsigned char>(rest[0]);
  const std::size_t length =
      lead >= 0xc2 && lead <= 0xf4 ? static_cast<std::size_t>(std::countl_one(lead)) : 0;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  const bool cut = rest.size() < length && std::all_of(rest.begin() + 1, rest.end(), continues);
  return cut ? rest.size() : 0;
}

std::string message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct AnswerReader::Pattern {
  explicit Pattern(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE place = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP, &error, &place, nullptr));
    if (!code)
      user_error("&generation pattern = '{}': {} at character {}", pattern, message(error),
                 place + 1);
    match.reset(pcre2_match_data_create_from_pattern(code.get(), nullptr));
  }

  /// First group of the match, or the whole text if the pattern has none; nothing without a match.
  std::optional<std::string> kept(std::string_view text) const {
    const int found = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), 0, 0, match.get(), nullptr);
    if (found < 0) return std::nullopt;  // includes PCRE2's match limit
    std::uint32_t groups = 0;
    pcre2_pattern_info(code.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
    if (groups == 0) return std::string(text);
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
    if (found < 2 || bounds[2] == PCRE2_UNSET) return std::string();
    return std::string(text.substr(bounds[2], bounds[3] - bounds[2]));
  }

  struct Free {
    void operator()(pcre2_code* c) const { pcre2_code_free(c); }
    void operator()(pcre2_match_data* m) const { pcre2_match_data_free(m); }
  };
  std::unique_ptr<pcre2_code, Free> code;
  std::unique_ptr<pcre2_match_data, Free> match;
};

AnswerReader::AnswerReader(const AnswerRules& rules) : rules_(rules) {
  for (const std::string& stop : rules_.stop) {
    if (stop.empty())
      user_error("&generation stop: an empty text would end every answer at once; remove it");
    longest_stop_ = std::max(longest_stop_, stop.size());
  }
  if (!rules_.pattern.empty()) pattern_ = std::make_unique<Pattern>(rules_.pattern);
}

AnswerReader::~AnswerReader() = default;

bool AnswerReader::stops(std::string_view text) const {
  return std::any_of(rules_.stop.begin(), rules_.stop.end(),
                     [&](const std::string& stop) { return text.find(stop) != text.npos; });
}

ReadAnswer AnswerReader::read(std::string_view written, bool cut) const {
  std::string_view text = written;
  std::size_t end = text.size();
  for (const std::string& stop : rules_.stop) end = std::min(end, text.find(stop));
  text = text.substr(0, end);
  const auto reject = [&](const char* kind, std::string reason) {
    return ReadAnswer{std::string(written), kind, std::move(reason)};
  };
  const bool whole = rules_.continues && !pattern_;
  const bool may_be_cut = whole && rules_.stop.empty();
  if (cut && may_be_cut) text.remove_suffix(incomplete_bytes(text));
  if (valid_utf8_prefix(text) != text.size())
    return reject("not UTF-8", "the answer is not valid UTF-8");
  if (rules_.chat.thinking) {
    const std::size_t thoughts = text.rfind(thoughts_end);
    if (thoughts == text.npos) return reject("thoughts", "its thinking does not end");
    text.remove_prefix(thoughts + thoughts_end.size());
  }
  if (whole) {
    if (cut && !may_be_cut) return reject("cut", "no stop text within &generation max_tokens");
    return {std::string(text), "", ""};
  }
  text = trimmed(text);
  if (!pattern_ && cut) return reject("cut", "longer than &generation max_tokens allows");
  const auto kept = pattern_ ? pattern_->kept(text) : std::string(text);
  if (!kept)
    return reject("pattern", cut ? "does not match the pattern; longer than max_tokens allows"
                                 : "does not match the pattern");
  if (kept->empty()) return reject("empty", "the answer is empty");
  return {*kept, "", ""};
}

}  // namespace tern::answer
