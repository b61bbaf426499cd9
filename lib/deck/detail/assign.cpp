#include "deck/detail/assign.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace tern::deck::detail {
namespace {

/// A value shortened for messages.
std::string shown(const Value& value) {
  std::string text = value.text.substr(0, 60);
  if (text.size() < value.text.size()) text += "...";
  return "'" + text + "'";
}

std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

/// 1_000_000 without separators; unchanged unless they separate groups of three digits.
std::string without_separators(std::string_view text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  std::string digits(text.substr(0, sign));
  for (std::size_t i = sign; i < text.size(); ++i) {
    const std::size_t left = text.size() - i;
    if (text[i] == '_' && (i == sign || left % 4 != 0)) return std::string(text);
    if (text[i] != '_' && left % 4 == 0 && text.find('_') != std::string_view::npos)
      return std::string(text);
    if (text[i] != '_') digits += text[i];
  }
  return digits;
}

/// Integer value of a real such as 1e3 or 2.5d6; nullopt if it is not whole or not exact in a
/// double.
std::optional<std::int64_t> whole_power(std::string text) {
  const std::size_t mark = text.find_first_of("eEdD");
  if (mark == std::string::npos || text.find_first_not_of("0123456789+-.eEdD") != text.npos)
    return std::nullopt;
  text[mark] = 'e';
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  if (value != std::floor(value) || std::abs(value) > 0x1p53) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

/// convert() returns an error text, empty on success.
std::string convert(const Value& value, std::int64_t& result) {
  if (!value.quoted) {
    if (const auto whole = whole_power(std::string(without_plus(value.text)))) {
      result = *whole;
      return {};
    }
  }
  const std::string text = without_separators(without_plus(value.text));
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (!value.quoted && error == std::errc::result_out_of_range)
    return shown(value) + " does not fit in 64 bits; use a smaller number";
  if (value.quoted || error != std::errc() || rest != text.data() + text.size())
    return shown(value) + " is not an integer; use e.g. 1000, 1_000 or 1e3";
  return {};
}

std::string convert(const Value& value, double& result) {
  const std::string not_a_number = shown(value) + " is not a number; use e.g. 0.1, 6e-4 or 1d-3";
  std::string text(without_plus(value.text));
  if (value.quoted || text.find_first_not_of("0123456789+-.eEdD") != std::string::npos)
    return not_a_number;
  for (char& c : text)
    if (c == 'd' || c == 'D') c = 'e';
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error == std::errc::result_out_of_range)
    return shown(value) + " does not fit in a double; use a magnitude between 1e-300 and 1e300";
  if (error != std::errc() || rest != text.data() + text.size()) return not_a_number;
  return {};
}

std::string convert(const Value& value, bool& result) {
  const std::string text = lower(value.text);
  const bool yes = text == ".true." || text == ".t." || text == "true" || text == "t";
  const bool no = text == ".false." || text == ".f." || text == "false" || text == "f";
  if (value.quoted || (!yes && !no))
    return shown(value) + " is not a logical; use .true. or .false.";
  result = yes;
  return {};
}

std::string convert(const Value& value, std::string& result) {
  if (!value.quoted) return value.text + " is not a string; put it in quotes: '" + value.text + "'";
  result = value.text;
  return {};
}

template <class T>
struct Assigner {
  const std::string& name;
  Field& field;
  const Assignment& assignment;
  Errors& errors;

  bool fail(const Location& location, const std::string& text) const {
    errors.add(location, name + ": " + text);
    return false;
  }

  bool one(T* target) const {
    if (assignment.index != 0) return fail(assignment.location, "not a list; remove the index");
    if (assignment.values.size() != 1)
      return fail(assignment.values[1].location,
                  fmt::format("takes one value, not {}; remove the others, or add the missing '=' "
                              "after the next name",
                              assignment.values.size()));
    T result{};
    const std::string wrong = convert(assignment.values[0], result);
    if (!wrong.empty()) return fail(assignment.values[0].location, wrong);
    if constexpr (std::is_same_v<T, std::string>)
      if (!field.lines && result.find('\n') != std::string::npos)
        return fail(assignment.values[0].location,
                    "the string contains a line break; put it on one line");
    *target = std::move(result);
    return true;
  }

  bool list(std::vector<T>* target) const {
    std::vector<T> values;
    bool valid = true;
    for (const Value& value : assignment.values) {
      T result{};
      const std::string wrong = convert(value, result);
      if (!wrong.empty()) valid = fail(value.location, wrong);
      if constexpr (std::is_same_v<T, std::string>)
        if (result.find('\n') != std::string::npos)
          valid = fail(value.location, "the string contains a line break; put it on one line");
      values.push_back(std::move(result));
    }
    if (!valid) return false;
    if (assignment.index == 0) {
      *target = std::move(values);
      return true;
    }
    return element(*target, values);
  }

  bool element(std::vector<T>& target, const std::vector<T>& values) const {
    const auto index = static_cast<std::size_t>(assignment.index);
    if (values.size() != 1)
      return fail(assignment.values[1].location,
                  "an element takes one value; remove the index to set the whole list");
    if (index > target.size() + 1)
      return fail(assignment.location,
                  fmt::format("element {} of a list of {}; set element {} first", index,
                              target.size(), target.size() + 1));
    if (index > target.size()) target.push_back({});
    target[index - 1] = values[0];
    return true;
  }
};

struct AssignVisitor {
  const std::string& name;
  Field& field;
  const Assignment& assignment;
  Errors& errors;

  template <class T>
  bool operator()(T* target) const {
    return Assigner<T>{name, field, assignment, errors}.one(target);
  }
  template <class T>
  bool operator()(std::vector<T>* target) const {
    return Assigner<T>{name, field, assignment, errors}.list(target);
  }
};

/// Error text for a value out of range, else empty.
std::string outside(const Field& field, double value) {
  const bool low = field.low_open ? value > field.lowest : value >= field.lowest;
  const bool high = field.high_open ? value < field.highest : value <= field.highest;
  if (low && high) return {};
  return fmt::format("{} is out of range; it must be {}", text_of(value), range_of(field));
}

std::string outside(const Field& field, const std::string& value) {
  for (const std::string& choice : field.choices)
    if (choice == value) return {};
  if (field.choices.empty()) return {};
  return fmt::format("'{}' is not one of {}{}", value, range_of(field),
                     suggestion(value, field.choices));
}

struct RangeVisitor {
  const Field& field;

  std::string operator()(const bool*) const { return {}; }
  std::string operator()(const std::int64_t* value) const {
    if (outside(field, static_cast<double>(*value)).empty()) return {};
    return fmt::format("{} is out of range; it must be {}", *value, range_of(field));
  }
  template <class T>
  std::string operator()(const T* value) const {
    return outside(field, *value);
  }
  template <class T>
  std::string operator()(const std::vector<T>* values) const {
    for (const T& value : *values) {
      if constexpr (std::is_same_v<T, std::string>)
        if (value.empty()) return "an empty string in the list; remove it";
      const std::string wrong = outside(field, value);
      if (!wrong.empty()) return wrong;
    }
    return {};
  }
};

}  // namespace

void assign(const std::string& full_name, Field& field, const Assignment& assignment,
            Errors& errors) {
  field.given = true;
  field.location = assignment.location;
  field.invalid = !std::visit(AssignVisitor{full_name, field, assignment, errors}, field.target);
}

void check_ranges(Table& table, Errors& errors) {
  for (Group& group : table.groups)
    for (Field& field : group.fields) {
      if (field.invalid) continue;
      const std::string wrong = std::visit(RangeVisitor{field}, field.target);
      if (wrong.empty()) continue;
      field.invalid = true;
      errors.add(field.location, fmt::format("{}.{}: {}", group.name, field.name, wrong));
    }
}

}  // namespace tern::deck::detail
