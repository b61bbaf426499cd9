/// Conversion of assignments to values; checks of types and ranges.
#pragma once
#include <string>

#include "deck/detail/table.hpp"
#include "deck/loaded_model.hpp"
#include "namelist/parser.hpp"

namespace tern::deck::detail {

using namelist::Assignment, namelist::Value, namelist::lower;

/// Assigns values to a field. A wrong type or count is a mistake and leaves the field unchanged,
/// marked invalid.
void assign(const std::string& full_name, Field&, const Assignment&, Errors&);

/// Parses an override "group.name=value" into an assignment; strings need no quotes. False after a
/// mistake.
bool parse_override(const std::string& text, int index, Table&, Assignment&, Errors&);

/// Fills &model and the tokenizer from &model load; values that contradict it are mistakes
/// (take_model.cpp).
void take_model(Deck&, Table&, const ModelAt&, Errors&);

/// Checks every field's range and choices; marks failures invalid.
void check_ranges(Table&, Errors&);

/// Checks for contradictory values (contradictions.cpp).
void check_contradictions(const Deck&, Table&, Errors&);

/// Checks that the task's files are named.
void check_files(const Deck&, Table&, Errors&);

}  // namespace tern::deck::detail
