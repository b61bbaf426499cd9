/// What &data names, opened: token shards, or samples or conversations made into rows.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/mesh.hpp"
#include "data/chat_source.hpp"
#include "data/sample_source.hpp"
#include "deck/deck.hpp"

namespace tern::campaign {

struct DataSet {
  std::unique_ptr<data::Shards> shards;  // or
  std::vector<data::Sample> samples;     // in the order of their files
  std::unique_ptr<data::Source> source;
  const data::ChatSource* chats = nullptr;  // the source, if it is of conversations
  double fill = 1;                          // share of the rows' positions that samples stand on
  std::string summary;  // "9.6 M tokens", "7,473 samples in 2,510 rows, 98.2% filled, ..."
};

/// Opens &data train or valid (`patterns`) for the deck's objective. `tokenizer` is needed for
/// samples alone. Throws UserError for what is missing or too short.
DataSet open_data(const deck::Deck& deck, const std::vector<std::string>& patterns,
                  const text::Tokenizer* tokenizer);

/// What a training run reads.
struct TrainingData {
  std::unique_ptr<text::Tokenizer> tokenizer;  // null: none needed, and no samples are written
  DataSet train, valid;
};

/// Opens both sets, and the tokenizer where they need one or rank 0 writes samples of text.
TrainingData open_training_data(const deck::Deck& deck, const comm::Mesh& mesh, Log& log);

/// UserError if token shards (`patterns`) were made with another tokenizer than &data tokenizer, or
/// than each other, as far as a meta.json beside them tells. Rank 0 looks, and fails for all.
/// Collective.
void check_shards(const deck::Deck& deck, const std::vector<std::string>& patterns,
                  const comm::Mesh& mesh, Log& log);

/// How a deck's samples become tokens.
data::SampleRules sample_rules(const deck::Deck& deck);

}  // namespace tern::campaign
