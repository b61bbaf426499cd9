/// Headline figures at the top of a report.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "job/run_record.hpp"
#include "report/detail/history.hpp"

namespace tern::report::detail {

struct Card {
  std::string title, value, note;
};

struct Headline {
  std::string state;  // in a word or two: "running", "finished"
  const std::optional<job::RunRecord>& record;
  const std::optional<deck::Deck>& deck;
  const History& history;
};

/// Status, best score, loss, tokens/s, time left or taken, cost and memory; those that the run has.
std::vector<Card> cards_of(const Headline& run);

/// An extreme of a curve after step 0, the first one.
struct Best {
  double value, step;
};
std::optional<Best> lowest(const Curve& curve);
std::optional<Best> highest(const Curve& curve);

}  // namespace tern::report::detail
