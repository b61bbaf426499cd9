#include "deck/renamed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace tern::deck {
namespace {

/// Value of a name that has been replaced, from a printed deck.
using Convert = std::string (*)(const std::string& printed, const std::string& value);

struct Renamed {
  std::string_view group, before, now;
  const char* remedy = nullptr;  // null: only the name is another
  Convert convert = nullptr;     // null: the value stays
};

std::int64_t number_after(const std::string& printed, std::string_view name) {
  const std::size_t at = printed.find(name);
  return at == printed.npos ? 0 : std::strtoll(printed.c_str() + at + name.size(), nullptr, 10);
}

std::string rows_of_batches(const std::string& printed, const std::string& batches) {
  const std::int64_t rows =
      std::strtoll(batches.c_str(), nullptr, 10) * number_after(printed, "\n  per_rank = ");
  return fmt::format("{}", std::max<std::int64_t>(1, rows));
}

constexpr Renamed all_renamed[] = {
    {"model", "renormalise_experts", "renormalize_experts"},
    {"evaluation", "beside", "compare_with"},
    {"evaluation", "batches", "rows",
     "; validation is now counted in rows, whatever per_rank is; set rows = batches x per_rank",
     rows_of_batches},
};

/// Replaces `before` in the group's lines of a printed deck.
void rename(std::string& printed, const Renamed& renamed) {
  const std::string group = fmt::format("&{}\n", renamed.group);
  const std::size_t begin = printed.starts_with(group) ? 0 : printed.find("\n" + group);
  if (begin == printed.npos) return;
  const std::string line = fmt::format("\n  {} = ", renamed.before);
  const std::size_t end = printed.find("\n/", begin), at = printed.find(line, begin);
  if (at == printed.npos || at > end) return;
  const std::size_t value = at + line.size();
  const std::size_t value_end = std::min(printed.find('\n', value), printed.size());
  std::string text = printed.substr(value, value_end - value);
  if (renamed.convert) text = renamed.convert(printed, text);
  printed.replace(at, value_end - at, fmt::format("\n  {} = {}", renamed.now, text));
}

}  // namespace

std::string successor(std::string_view group, std::string_view name) {
  for (const Renamed& renamed : all_renamed)
    if (renamed.group == group && renamed.before == name)
      return renamed.remedy ? renamed.remedy : fmt::format("; did you mean '{}'?", renamed.now);
  return {};
}

std::string in_current_names(std::string printed) {
  for (const Renamed& renamed : all_renamed) rename(printed, renamed);
  return printed;
}

Deck parse_stored(const std::string& printed, const std::string& name) {
  return parse(in_current_names(printed), name);
}

}  // namespace tern::deck
