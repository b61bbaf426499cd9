/// Opened data sets of a training run.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/mesh.hpp"
#include "data/data_set.hpp"
#include "deck/deck.hpp"
#include "text/tokenizer.hpp"

namespace tern::campaign {

/// Data of a training run.
struct TrainingData {
  std::unique_ptr<text::Tokenizer> tokenizer;  // null: not needed by the data, and no text samples
  data::DataSet train, valid;
};

/// Opens both sets, and the tokenizer if they need one or text samples are written. Collective.
TrainingData open_training_data(const deck::Deck& deck, const comm::Mesh& mesh, Log& log);

/// Throws UserError if a meta.json next to token shards (`patterns`) names a tokenizer other than
/// &data tokenizer, or if shards differ in it. Checked by rank 0, which fails for all. Collective.
void check_shards(const deck::Deck& deck, const std::vector<std::string>& patterns,
                  const comm::Mesh& mesh, Log& log);

}  // namespace tern::campaign
