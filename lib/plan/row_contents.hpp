/// Mean contents of a row of the data: which of its positions hold tokens of the data.
#pragma once
#include "data/source.hpp"
#include "deck/deck.hpp"

namespace tern::plan {

/// Means per row.
struct RowContents {
  double samples = 1;  // packed in the row, without attention across them
  double prefix = 0;   // tokens given clean, not doubled
  double learned = 0;  // tokens with a loss, masked or not
  double others = 0;   // tokens of the data that are neither of these
  bool assumed = true;

  /// Tokens as train/throughput counts them.
  double tokens() const { return prefix + learned + others; }
};

/// Rows without padding, samples as long as the deck allows. Exact for token shards.
RowContents full_rows(const deck::Deck& deck);

/// Means over the first rows of the training data.
RowContents mean_row(const deck::Deck& deck, const data::Source& source);

/// Positions per row that enter the head, averaged over the noise.
double scored_positions(const deck::Deck& deck, const RowContents& contents);

/// Mean number of keys that a position of a row attends to.
double seen_keys(const deck::Deck& deck, const RowContents& contents);

}  // namespace tern::plan
