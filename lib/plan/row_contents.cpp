#include "plan/row_contents.hpp"

#include <algorithm>

#include "deck/choices.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"
#include "objective/objective.hpp"

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
  if (!deck::kind_of(deck).diffuses) return row.learned;
  return row.learned * (deck.objective.clip_low + deck.objective.clip_high) / 2;
}

double seen_keys(const deck::Deck& deck, const RowContents& row) {
  const auto positions = static_cast<double>(objective::row_positions(deck));
  const double tokens = row.tokens() / row.samples, window = static_cast<double>(deck.model.window);
  if (window > 0 && window < tokens) return window - window * (window - 1) / (2 * tokens);
  if (!deck::kind_of(deck).diffuses) return (tokens + 1) / 2;
  // Each sample: a prefix that attends to itself, and two copies of the rest, which attend to the
  // prefix and, on average, to half of the rest.
  const deck::Objective& o = deck.objective;
  const double prefix = row.prefix / row.samples;
  const double rest = (row.learned + row.others) / row.samples;
  const auto block =
      static_cast<double>(deck::hierarchical(o) ? o.execution_block : o.block_length);
  const double pairs = prefix * prefix + 2 * rest * (prefix + (rest + block) / 2);
  return row.samples * pairs / positions;
}

}  // namespace tern::plan
