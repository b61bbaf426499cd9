/// What a row of the data holds on average: how much of its work is for tokens of the data.
#pragma once
#include "data/source.hpp"
#include "deck/deck.hpp"

namespace tern::plan {

/// Means of a row.
struct RowContents {
  double samples = 1;  // that share it, none of which sees another
  double prefix = 0;   // tokens given clean, and not doubled
  double learned = 0;  // tokens that losses are of, masked or not
  double others = 0;   // tokens of the data that are neither
  bool assumed = true;

  /// As train/throughput counts them.
  double tokens() const { return prefix + learned + others; }
};

/// Of rows without padding; of samples, each as long as the deck allows. Exact for token shards.
RowContents full_rows(const deck::Deck& deck);

/// Of the first rows of the training data.
RowContents mean_row(const deck::Deck& deck, const data::Source& source);

/// Positions of a row that the head is given, on average of the noise.
double scored_positions(const deck::Deck& deck, const RowContents& contents);

/// Keys that a position sees, on average of a row.
double seen_keys(const deck::Deck& deck, const RowContents& contents);

}  // namespace tern::plan
