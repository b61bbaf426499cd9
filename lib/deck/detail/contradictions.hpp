/// Reporting of contradictions, and the checks of each part of the deck.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "deck/detail/table.hpp"

namespace tern::deck::detail {

/// Adds mistakes that involve several fields. Skips a mistake if one of its fields is already
/// invalid; its location is that of the first field that the user wrote.
class Contradictions {
 public:
  Contradictions(Table& table, Errors& errors) : table_(table), errors_(errors) {}

  /// `names`: fields involved, "group.name", the one to blame first.
  void check(bool wrong, const std::vector<const char*>& names, const std::string& text) {
    if (!wrong) return;
    const Field* blamed = nullptr;
    for (const std::string_view name : names) {
      const auto dot = name.find('.');
      const Field& field = table_.at(name.substr(0, dot), name.substr(dot + 1));
      if (field.invalid) return;
      if (!blamed && field.given) blamed = &field;
    }
    errors_.add(blamed ? blamed->location : Location{}, fmt::format("{}: {}", names.front(), text));
  }

  bool given(std::string_view name) {
    const auto dot = name.find('.');
    return table_.at(name.substr(0, dot), name.substr(dot + 1)).given;
  }

 private:
  Table& table_;
  Errors& errors_;
};

// Connections of blocks, growth of batch and window: contradictions_recipe.cpp.
void check_connections(const Deck&, Contradictions&);
void check_growth(const Deck&, Contradictions&);

// Schedule, ranks, requests and run: contradictions_run.cpp.
void check_schedule(const Deck&, Contradictions&);
void check_optimizer(const Deck&, Contradictions&);
void check_parallel(const Deck&, Contradictions&);
void check_requests(const Deck&, Contradictions&);
void check_run(const Deck&, Contradictions&);

}  // namespace tern::deck::detail
