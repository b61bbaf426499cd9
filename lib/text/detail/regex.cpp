#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/detail/regex.hpp"

#include <pcre2.h>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace tern::text::detail {
namespace {

constexpr std::size_t jit_stack_bytes = std::size_t{1} << 20;

std::string message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

/// Per-thread match state; each match overwrites the results.
struct MatchState {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 * 1024, jit_stack_bytes, nullptr);
  MatchState() { pcre2_jit_stack_assign(context, nullptr, stack); }
  ~MatchState() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
};

}  // namespace

Regex::Regex(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &place, nullptr);
  if (code == nullptr)
    user_error("pattern '{}': {} at character {}", pattern, message(error), place + 1);
  // Without JIT support on this processor the interpreter gives the same matches, more slowly.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  code_ =
      std::shared_ptr<void>(code, [](void* c) { pcre2_code_free(static_cast<pcre2_code*>(c)); });
}

bool Regex::find(std::string_view text, std::size_t at, std::size_t& first,
                 std::size_t& last) const {
  thread_local const MatchState state;
  const int found = pcre2_match(static_cast<const pcre2_code*>(code_.get()),
                                reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                PCRE2_NO_UTF_CHECK, state.data, state.context);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) user_error("the pre-tokenizer pattern failed on a text: {}", message(found));
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(state.data);
  first = bounds[0];
  last = bounds[1];
  return true;
}

std::size_t Regex::after_empty(std::string_view text, std::size_t at) {
  return at + std::max<std::size_t>(1, utf8_length(text.substr(at)));
}

}  // namespace tern::text::detail
