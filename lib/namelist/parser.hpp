/// Parser from deck text to assignments. Knows the syntax, not the names.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "namelist/errors.hpp"
#include "namelist/lexer.hpp"

namespace tern::namelist {

struct Value {
  std::string text;
  bool quoted = false;
  Location location;
};

struct Assignment {
  std::string group, name;    // lower case
  Location location;          // of the name
  int index = 0;              // name(index), from 1; 0: the whole value
  std::vector<Value> values;  // repeats expanded
};

struct GroupUse {
  std::string name;   // lower case
  Location location;  // of the '&'
};

struct ParsedDeck {
  std::vector<GroupUse> groups;
  std::vector<Assignment> assignments;
  std::vector<Assignment> failed;  // reported already; values unknown
};

/// Whether strings of a field may contain line ends.
using MayHoldLines = std::function<bool(const std::string& group, const std::string& name)>;

/// Parses the output of clean(). Syntax errors go to `errors`; returns all that can be read.
ParsedDeck parse_deck(std::string_view text, const MayHoldLines& may_hold_lines, Errors& errors);

/// Parses the values of an override, e.g. "0.9, 0.95"; strings may contain line ends if `lines`.
/// False after a mistake, which names `name`.
bool parse_values(std::string_view text, const std::string& name, bool lines, int override_index,
                  std::vector<Value>& values, Errors& errors);

std::string lower(std::string_view text);

}  // namespace tern::namelist
