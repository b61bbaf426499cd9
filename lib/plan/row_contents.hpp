/// Mean contents of the rows of a deck or of opened data.
#pragma once
#include "objective/kind.hpp"

namespace tern::plan {

using objective::RowContents;

/// Rows without padding, samples as long as the deck allows. Exact for token shards.
RowContents full_rows(const deck::Deck& deck);

/// Means over the first rows of the training data.
RowContents mean_row(const deck::Deck& deck, const data::Source& source);

/// Positions per row that enter the head, averaged over the noise.
double scored_positions(const deck::Deck& deck, const RowContents& contents);

/// Mean number of keys that a position of a row attends to.
double seen_keys(const deck::Deck& deck, const RowContents& contents);

}  // namespace tern::plan
