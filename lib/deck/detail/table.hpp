/// The schema: every field of a deck with its help, unit, range and choices. A table is bound to
/// one deck; reading, checking, printing and the reference page walk the same list.
#pragma once
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "deck/deck.hpp"
#include "namelist/errors.hpp"

namespace tern::deck::detail {

using namelist::Errors, namelist::Location;

using Strings = std::vector<std::string>;
using Numbers = std::vector<double>;
using Target = std::variant<std::int64_t*, double*, bool*, std::string*, Strings*, Numbers*>;

constexpr double unlimited = std::numeric_limits<double>::infinity();

class Field {
 public:
  Field(std::string field_name, Target field_target, std::string field_help)
      : name(std::move(field_name)), help(std::move(field_help)), target(field_target) {}

  // Set by describe().
  Field& unit(std::string text) { return units = std::move(text), *this; }
  Field& at_least(double low) { return lowest = low, *this; }
  Field& above(double low) { return lowest = low, low_open = true, *this; }
  Field& at_most(double high) { return highest = high, *this; }
  Field& below(double high) { return highest = high, high_open = true, *this; }
  Field& one_of(std::initializer_list<const char*> list) {
    return choices.assign(list.begin(), list.end()), *this;
  }
  /// Names from a list of choices (deck/choices.hpp, deck/objective_kind.hpp).
  template <class Choices>
  Field& one_of(const Choices& list) {
    for (const auto& choice : list) choices.emplace_back(choice.name);
    return *this;
  }
  /// A choice of training, free for a loaded model and not part of an exported one.
  Field& for_training() { return of_training = true, *this; }
  Field& may_hold_lines() { return lines = true, *this; }

  std::string name, help, units;
  Target target;
  double lowest = -unlimited, highest = unlimited;
  bool low_open = false, high_open = false;
  std::vector<std::string> choices;  // for strings; empty: any
  bool lines = false;                // strings may contain line ends
  bool of_training = false;

  // Set while reading a deck.
  Location location;     // last assignment
  bool given = false;    // in the deck or an override
  bool invalid = false;  // reported already; other checks ignore the value
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
  /// The named field, which must exist.
  Field& at(std::string_view group, std::string_view field);
};

/// Table bound to `deck`, which must outlive it.
Table describe(Deck& deck);

// One function per group, in groups_*.cpp: fields in printing order.
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
/// Allowed values: "1 to 65536", "above 0", "'a' | 'b'"; empty: any.
std::string range_of(const Field&);
/// Value in namelist syntax; reals in the fewest digits that round-trip.
std::string text_of(const Field&);
std::string text_of(double value);

/// "; did you mean 'hidden'?" or, without a near match, "; valid are a, b, c".
std::string suggestion(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace tern::deck::detail
