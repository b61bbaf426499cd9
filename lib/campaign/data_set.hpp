/// Opened data sets of &data: token shards, or samples or conversations arranged in rows.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/mesh.hpp"
#include "data/chat_source.hpp"
#include "data/sample_source.hpp"
#include "data/step_rows.hpp"
#include "deck/deck.hpp"

namespace tern::campaign {

struct DataSet {
  std::unique_ptr<data::Shards> shards;  // or
  std::vector<data::Sample> samples;     // in the order of their files
  std::unique_ptr<data::Source> source;
  const data::ChatSource* chats = nullptr;  // the source, if it has conversations
  double fill = 1;                          // fraction of positions that hold samples
  data::SetSize size;   // rows, and samples or conversations in them (token shards: windows)
  std::string summary;  // "9.6 M tokens", "7,473 samples in 2,510 rows, 98.2% filled, ..."
};

/// Opens &data train or valid (`patterns`) for the deck's objective. `tokenizer` is needed for
/// samples only. Throws UserError for missing or too short data.
DataSet open_data(const deck::Deck& deck, const std::vector<std::string>& patterns,
                  const text::Tokenizer* tokenizer);

/// Data of a training run.
struct TrainingData {
  std::unique_ptr<text::Tokenizer> tokenizer;  // null: not needed by the data, and no text samples
  DataSet train, valid;
};

/// Opens both sets, and the tokenizer if they need one or text samples are written. Collective.
TrainingData open_training_data(const deck::Deck& deck, const comm::Mesh& mesh, Log& log);

/// Throws UserError if a meta.json next to token shards (`patterns`) names a tokenizer other than
/// &data tokenizer, or if shards differ in it. Checked by rank 0, which fails for all. Collective.
void check_shards(const deck::Deck& deck, const std::vector<std::string>& patterns,
                  const comm::Mesh& mesh, Log& log);

/// Rules by which a deck's samples become tokens.
data::SampleRules sample_rules(const deck::Deck& deck);

}  // namespace tern::campaign
