/// Two kinds of errors. UserError: wrong input; its text names the place, the value and the remedy,
/// and main() prints it without a trace. InternalError: a bug; TERN_REQUIRE names the condition and
/// the place. Both end every rank: comm::run_ranks turns an exception on any rank into one message
/// and a nonzero exit code on all.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace tern {

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws UserError with a formatted message.
template <class... Args>
[[noreturn]] void user_error(fmt::format_string<Args...> text, Args&&... args) {
  throw UserError(fmt::format(text, std::forward<Args>(args)...));
}

namespace detail {
[[noreturn]] inline void require_failed(const char* condition, const char* file, int line,
                                        const std::string& text) {
  throw InternalError(fmt::format("{}:{}: internal error: {} does not hold{}{}", file, line,
                                  condition, text.empty() ? "" : ": ", text));
}
}  // namespace detail
}  // namespace tern

/// Asserts an invariant in every build type. Extra arguments: fmt format string and values.
#define TERN_REQUIRE(condition, ...)                                 \
  do {                                                               \
    if (!(condition))                                                \
      ::tern::detail::require_failed(#condition, __FILE__, __LINE__, \
                                     ::fmt::format("" __VA_ARGS__)); \
  } while (false)
