#include <fmt/format.h>

#include "deck/detail/assign.hpp"

namespace tern::deck::detail {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool starts_quoted(std::string_view text) {
  return !text.empty() && (text[0] == '\'' || text[0] == '"');
}

/// Unquoted strings, separated by commas and blanks.
std::vector<Value> bare_strings(std::string_view text, const Location& location) {
  std::vector<Value> values;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(", \t"), text.size());
    if (end > 0) values.push_back({std::string(text.substr(0, end)), true, location});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return values;
}

/// Splits "name(2)" into name and index; false if malformed.
bool split_index(std::string& name, int& index) {
  const auto open = name.find('(');
  if (open == std::string::npos) return true;
  const std::string_view inside = std::string_view(name).substr(open + 1);
  const std::string digits(trim(inside.substr(0, inside.find(')'))));
  if (name.back() != ')' || digits.empty() || digits.size() > 6 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return false;
  index = std::stoi(digits);
  name = std::string(trim(std::string_view(name).substr(0, open)));
  return index > 0;
}

}  // namespace

bool parse_override(const std::string& text, int index, Table& table, Assignment& assignment,
                    Errors& errors) {
  const Location location{0, 0, index};
  const auto fail = [&](const std::string& message) {
    errors.add(location, message);
    return false;
  };
  const auto equals = text.find('=');
  const std::string full(lower(trim(std::string_view(text).substr(0, equals))));
  const auto dot = full.find('.');
  if (equals == std::string::npos || dot == std::string::npos)
    return fail(full + ": not an override; use group.name=value");
  assignment.location = location;
  assignment.group = full.substr(0, dot);
  assignment.name = full.substr(dot + 1);
  if (!split_index(assignment.name, assignment.index))
    return fail(full + ": the index is not a positive integer; use name(2)=value");

  const Field* field = table.find(assignment.group, assignment.name);
  if (!field) return true;  // unknown names are reported with those of the deck
  const std::string_view value = trim(std::string_view(text).substr(equals + 1));
  const bool bare = !starts_quoted(value);
  if (bare && std::holds_alternative<std::string*>(field->target)) {
    assignment.values = {{std::string(value), true, location}};
    return true;
  }
  if (bare && std::holds_alternative<Strings*>(field->target)) {
    assignment.values = bare_strings(value, location);
    if (assignment.index == 0 || !assignment.values.empty()) return true;
  }
  return parse_values(value, full, field->lines, index, assignment.values, errors);
}

}  // namespace tern::deck::detail
