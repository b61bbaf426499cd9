/// From the text of a deck to its assignments. Knows the syntax, not the names.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "deck/detail/errors.hpp"
#include "deck/detail/lexer.hpp"

namespace tern::deck::detail {

struct Value {
  std::string text;
  bool quoted = false;
  Place place;
};

struct Assignment {
  std::string group, name;    // in lower case
  Place place;                // of the name
  int index = 0;              // name(index), from 1; 0: the whole value
  std::vector<Value> values;  // repeats are expanded
};

struct GroupUse {
  std::string name;  // in lower case
  Place place;       // of the '&'
};

struct ParsedDeck {
  std::vector<GroupUse> groups;
  std::vector<Assignment> assignments;
  std::vector<Assignment>
      failed;  // whose mistakes have been reported; nothing is known of the values
};

/// Says of a group and name whether its strings may hold line ends.
using MayHoldLines = std::function<bool(const std::string& group, const std::string& name)>;

/// `text` as clean() made it. Mistakes of syntax go to `errors`; what can be read is returned.
ParsedDeck parse_deck(std::string_view text, const MayHoldLines& may_hold_lines, Errors& errors);

/// The values of an override: "0.9, 0.95"; strings with line ends if `lines`. False after a
/// mistake, which names `name`.
bool parse_values(std::string_view text, const std::string& name, bool lines, int override_index,
                  std::vector<Value>& values, Errors& errors);

std::string lower(std::string_view text);

}  // namespace tern::deck::detail
