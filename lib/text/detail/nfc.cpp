#include "text/detail/nfc.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/error.hpp"

namespace tern::text::detail {

bool is_surely_nfc(std::string_view text) {
  // The lead bytes of U+0300 and above begin at 0xcc; continuation bytes are below 0xc0.
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0xcc; });
}

std::string to_nfc(std::string_view text) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, std::free);
  TERN_REQUIRE(bytes >= 0, "{}", utf8proc_errmsg(bytes));
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(bytes)};
}

}  // namespace tern::text::detail
