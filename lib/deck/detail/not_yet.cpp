#include <fmt/format.h>

#include "deck/detail/assign.hpp"

namespace tern::deck::detail {
namespace {

/// Values that decks may name but this version does not implement; implementing one deletes its
/// line.
struct NotYet {
  const char* group;
  const char* name;
  const char* value;    // refused; "*": all except `instead`; ">": all above `instead`
  const char* instead;  // value to use for now
  const char* what;
};

constexpr NotYet not_yet[] = {
    {"precision", "compute", "fp16", "bf16", "fp16"},
};

bool refused(const NotYet& entry, const Field& field) {
  if (const auto* number = std::get_if<std::int64_t*>(&field.target))
    return **number > std::stoll(entry.instead);
  const std::string& value = *std::get<std::string*>(field.target);
  return std::string_view(entry.value) == "*" ? value != entry.instead : value == entry.value;
}

}  // namespace

void check_built(Table& table, Errors& errors) {
  for (const NotYet& entry : not_yet) {
    Field& field = table.at(entry.group, entry.name);
    if (field.invalid || !refused(entry, field)) continue;
    const bool string = std::holds_alternative<std::string*>(field.target);
    field.invalid = true;
    errors.add(field.location,
               fmt::format("{}.{}: {} asks for {}, which this version does not build yet; use {}",
                           entry.group, entry.name, text_of(field), entry.what,
                           string ? fmt::format("'{}'", entry.instead) : entry.instead));
  }
}

std::vector<std::string> not_built() {
  std::vector<std::string> lines;
  for (const NotYet& entry : not_yet) {
    const std::string_view value = entry.value;
    const std::string refusal = value == ">"   ? fmt::format("above {}", entry.instead)
                                : value == "*" ? fmt::format("other than `'{}'`", entry.instead)
                                               : fmt::format("= `'{}'`", value);
    lines.push_back(fmt::format("`{}.{}` {}: {}", entry.group, entry.name, refusal, entry.what));
  }
  return lines;
}

}  // namespace tern::deck::detail
