/// The schema: every field of a deck with what its struct cannot say. A table is bound to one deck,
/// so that reading, checking, printing and the reference page walk the same list.
#pragma once
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "deck/deck.hpp"
#include "deck/detail/errors.hpp"

namespace tern::deck::detail {

using Strings = std::vector<std::string>;
using Numbers = std::vector<double>;
using Target = std::variant<std::int64_t*, double*, bool*, std::string*, Strings*, Numbers*>;

constexpr double unlimited = std::numeric_limits<double>::infinity();

class Field {
 public:
  Field(std::string field_name, Target field_target, std::string field_help)
      : name(std::move(field_name)), help(std::move(field_help)), target(field_target) {}

  // What a describe() function adds.
  Field& unit(std::string text) { return units = std::move(text), *this; }
  Field& at_least(double low) { return lowest = low, *this; }
  Field& above(double low) { return lowest = low, low_open = true, *this; }
  Field& at_most(double high) { return highest = high, *this; }
  Field& below(double high) { return highest = high, high_open = true, *this; }
  Field& one_of(std::initializer_list<const char*> list) {
    return choices.assign(list.begin(), list.end()), *this;
  }
  /// The names of a list of choices (deck/choices.hpp).
  template <class Choices>
  Field& one_of(const Choices& list) {
    for (const auto& choice : list) choices.emplace_back(choice.name);
    return *this;
  }
  Field& may_hold_lines() { return lines = true, *this; }

  std::string name, help, units;
  Target target;
  double lowest = -unlimited, highest = unlimited;
  bool low_open = false, high_open = false;
  std::vector<std::string> choices;  // of a string; empty: any
  bool lines = false;                // a string that may hold line ends

  // What reading a deck notes.
  Place place;           // of the last assignment
  bool given = false;    // in the deck or an override
  bool invalid = false;  // a mistake has been reported; nothing is concluded from the value
};

struct Group {
  std::string name, help;
  std::vector<Field> fields;

  template <class T>
  Field& add(const char* field, T& target, const char* help_line) {
    return fields.emplace_back(field, Target(&target), help_line);
  }
  Field* find(std::string_view field);
};

struct Table {
  std::vector<Group> groups;

  Group* find(std::string_view group);
  Field* find(std::string_view group, std::string_view field);
  /// The field of a name that must exist.
  Field& at(std::string_view group, std::string_view field);
};

/// The table of `deck`, which must outlive it.
Table describe(Deck& deck);

// One function a group, in groups_*.cpp: fields in the order in which they are printed.
void describe(Group&, Campaign&);
void describe(Group&, Model&);
void describe(Group&, Objective&);
void describe(Group&, Data&);
void describe(Group&, Batch&);
void describe(Group&, Optimizer&);
void describe(Group&, Precision&);
void describe(Group&, Parallel&);
void describe(Group&, Checkpoint&);
void describe(Group&, Evaluation&);
void describe(Group&, Generation&);
void describe(Group&, Output&);
void describe(Group&, Cost&);

/// "integer", "real", "logical", "string", "strings", "reals".
std::string type_of(const Field&);
/// The allowed values in words: "1 to 65536", "above 0", "'a' | 'b'"; empty: any.
std::string range_of(const Field&);
/// The value in namelist syntax, reals in the fewest digits that read back the same.
std::string text_of(const Field&);
std::string text_of(double value);

/// "; did you mean 'hidden'?" or, where nothing is near, "; it knows a, b and c".
std::string suggestion(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace tern::deck::detail
