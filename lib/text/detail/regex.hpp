/// A PCRE2 pattern over UTF-8 text with Unicode properties, compiled to machine code where
/// possible.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tern::text::detail {

class Regex {
 public:
  /// Throws UserError that quotes the pattern and the place of the mistake in it.
  explicit Regex(const std::string& pattern);

  /// Calls visit(first, last) for each match from left to right, as byte positions; matches of no
  /// characters are stepped over. `text` must be valid UTF-8. May be called by several threads.
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
