#include "plan/row_contents.hpp"

#include <algorithm>

#include "deck/rules.hpp"

namespace tern::plan {
namespace {

constexpr std::size_t looked_at = 4096;  // rows

}  // namespace

RowContents full_rows(const deck::Deck& deck) {
  const auto context = static_cast<double>(deck.model.context);
  RowContents row;
  if (deck::conditioned(deck)) row.prefix = static_cast<double>(deck.data.question_tokens);
  row.learned = context - row.prefix;
  row.assumed = deck::holds_samples(deck.data);
  return row;
}

RowContents mean_row(const deck::Deck& deck, const data::Source& source) {
  const std::size_t rows = std::min(source.rows(), looked_at);
  if (rows == 0) return full_rows(deck);
  data::Counts sum;
  for (std::size_t row = 0; row < rows; ++row) sum += source.counts(row);
  const auto mean = [&](std::int64_t count) {
    return static_cast<double>(count) / static_cast<double>(rows);
  };
  RowContents row;
  row.samples = std::max(1.0, mean(sum.samples));
  row.learned = mean(sum.predicted());
  const double rest = mean(sum.data_tokens) - row.learned;
  (deck::conditioned(deck) ? row.prefix : row.others) = rest;
  row.assumed = false;
  return row;
}

double scored_positions(const deck::Deck& deck, const RowContents& row) {
  return objective::kind(deck).mean_scored(deck, row);
}

double seen_keys(const deck::Deck& deck, const RowContents& row) {
  return objective::kind(deck).mean_keys(deck, row);
}

}  // namespace tern::plan
