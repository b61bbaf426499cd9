#include "namelist/errors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace tern::namelist {

namespace {

/// An override on one line of a message.
std::string shown(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    result += c == '\n' ? "\\n" : control ? fmt::format("\\x{:02x}", c) : std::string(1, c);
  }
  return result;
}

}  // namespace

std::string Errors::where(const Location& location) const {
  if (location.override_index >= 0)
    return "--set " + shown(overrides_[static_cast<std::size_t>(location.override_index)]);
  if (location.line == 0) return file_;
  return fmt::format("{}:{}:{}", file_, location.line, location.column);
}

void Errors::throw_if_any() {
  if (list_.empty()) return;
  const auto located = [](const Location& l) { return l.line > 0 || l.override_index >= 0; };
  std::stable_sort(list_.begin(), list_.end(), [&](const Error& a, const Error& b) {
    if (located(a.location) != located(b.location)) return located(a.location);
    return a.location < b.location;
  });
  std::string all = list_.size() > 1 ? fmt::format("{} mistakes", list_.size()) : std::string();
  for (const Error& error : list_) {
    if (!all.empty()) all += '\n';
    all += where(error.location) + ": " + error.text;
  }
  throw UserError(all);
}

}  // namespace tern::namelist
