/// Data sets of windows of token shards.
#pragma once
#include "data/data_set.hpp"
#include "deck/deck.hpp"

namespace tern::objective::detail {

/// The shards, without a source.
data::DataSet open_shards(const deck::Deck&, const std::vector<std::string>& files);
/// Size and summary of a set whose source has one row per window. Throws UserError if it has none.
data::DataSet with_windows(data::DataSet set, const deck::Deck&,
                           const std::vector<std::string>& files);

}  // namespace tern::objective::detail
