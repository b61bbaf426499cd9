/// What &data names, opened: token shards, or samples made into rows.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "data/sample_source.hpp"
#include "deck/deck.hpp"

namespace tern::campaign {

struct DataSet {
  std::unique_ptr<data::Shards> shards;  // or
  std::vector<data::Sample> samples;     // in the order of their files
  std::unique_ptr<data::Source> source;
  double fill = 1;      // share of the rows' positions that samples stand on
  std::string summary;  // "9.6 M tokens", "7,473 samples in 2,510 rows, 98.2% filled, ..."
};

/// Opens &data train or valid (`patterns`) for the deck's objective. `tokenizer` is needed for
/// samples alone. Throws UserError for what is missing or too short.
DataSet open_data(const deck::Deck& deck, const std::vector<std::string>& patterns,
                  const data::Tokenizer* tokenizer);

/// How a deck's samples become tokens.
data::SampleRules sample_rules(const deck::Deck& deck);

}  // namespace tern::campaign
