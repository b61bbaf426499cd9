/// From assignments to values: types and ranges.
#pragma once
#include <string>

#include "deck/detail/parser.hpp"
#include "deck/detail/table.hpp"
#include "deck/loaded_model.hpp"

namespace tern::deck::detail {

/// Writes the assignment's values into its field. A wrong type or count is a mistake and leaves the
/// field as it was, marked invalid.
void assign(const std::string& full_name, Field&, const Assignment&, Errors&);

/// The assignment an override "group.name=value" stands for. Strings may come without quotes.
/// False after a mistake.
bool parse_override(const std::string& text, int index, Table&, Assignment&, Errors&);

/// &model, and the tokenizer, from where its `load` points; what contradicts that is a mistake
/// (take_model.cpp).
void take_model(Deck&, Table&, const ModelAt&, Errors&);

/// Checks every field's range and allowed values; what fails is marked invalid.
void check_ranges(Table&, Errors&);

/// Values that the schema names but this version does not build (not_yet.cpp).
void check_built(Table&, Errors&);
/// The same in words, for the reference page.
std::vector<std::string> not_built();

/// Values that contradict one another (contradictions.cpp).
void check_contradictions(const Deck&, Table&, Errors&);

/// Whether the task's files are named.
void check_files(const Deck&, Table&, Errors&);

}  // namespace tern::deck::detail
