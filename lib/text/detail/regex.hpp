/// PCRE2 patterns over UTF-8 text with Unicode properties, JIT-compiled where possible.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tern::text::detail {

class Regex {
 public:
  /// Throws UserError that quotes the pattern and the position of the error in it.
  explicit Regex(const std::string& pattern);

  /// Calls visit(first, last) with the byte range of each non-empty match, from left to right.
  /// `text` must be valid UTF-8. Thread-safe.
  template <class Visit>
  void for_each_match(std::string_view text, const Visit& visit) const {
    std::size_t at = 0, first = 0, last = 0;
    while (at < text.size() && find(text, at, first, last)) {
      if (last > first) visit(first, last);
      at = last > first ? last : after_empty(text, last);
    }
  }

 private:
  bool find(std::string_view text, std::size_t at, std::size_t& first, std::size_t& last) const;
  static std::size_t after_empty(std::string_view text, std::size_t at);
  std::shared_ptr<void> code_;
};

}  // namespace tern::text::detail
