#include "campaign/data_set.hpp"

#include "base/error.hpp"
#include "comm/agreement.hpp"
#include "comm/waits.hpp"
#include "data/shard_origin.hpp"
#include "deck/rules.hpp"
#include "objective/kind.hpp"
#include "optimizer/update.hpp"
#include "text/deck_tokenizer.hpp"

namespace tern::campaign {
namespace {

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

/// Data that must be tokenized need a tokenizer. Text samples are optional: without a tokenizer the
/// run continues without them, as agreed among the ranks that generate them: the first replica, or
/// if fully sharded, all ranks.
std::unique_ptr<text::Tokenizer> optional_tokenizer(const deck::Deck& deck, const comm::Mesh& mesh,
                                                    Log& log) {
  std::unique_ptr<text::Tokenizer> tokenizer;
  if (deck::holds_samples(deck.data)) {
    comm::together([&] { tokenizer = text::open_tokenizer(deck); });
    return tokenizer;
  }
  const bool all = optimizer::fully_sharded(deck, mesh.data().size());
  if (deck.generation.samples == 0 || (mesh.data().rank() != 0 && !all)) return nullptr;
  try {
    tokenizer = text::open_tokenizer(deck);
  } catch (const UserError& e) {
    log.warning("no text samples at evaluations: {}", e.what());
  }
  if ((all ? mesh.world() : mesh.replica()).any(!tokenizer)) return nullptr;
  return tokenizer;
}

void check_shards_alone(const deck::Deck& deck, const std::vector<std::string>& patterns,
                        Log& log) {
  const auto origins = data::shard_origins(patterns);
  if (origins.empty()) return;
  const data::ShardOrigin& first = origins.front();
  for (const data::ShardOrigin& other : origins)
    if (!other.alike(first))
      user_error(
          "{} and {}: these shards were made with different tokenizers, '{}' ({} tokens) and '{}' "
          "({}): rebuild one of them with ./prepare",
          first.meta.string(), other.meta.string(), first.tokenizer, first.vocabulary,
          other.tokenizer, other.vocabulary);
  if (first.vocabulary > size(deck.model.vocabulary))
    user_error(
        "{}: these shards were made with the tokenizer '{}' of {} tokens, more than &model "
        "vocabulary = {}: write at least that, or name other shards",
        first.meta.string(), first.tokenizer, first.vocabulary, deck.model.vocabulary);
  std::unique_ptr<text::Tokenizer> tokenizer;
  try {
    tokenizer = text::open_tokenizer(deck);
  } catch (const UserError&) {  // training does not need one
    if (first.tokenizer != deck.data.tokenizer)
      log.warning(
          "{}: these shards were made with the tokenizer '{}'; &data tokenizer = '{}' cannot be "
          "opened to see whether it is the same",
          first.meta.string(), first.tokenizer, deck.data.tokenizer);
    return;
  }
  data::require_made_with(first, *tokenizer, deck.data.tokenizer);
}

}  // namespace

void check_shards(const deck::Deck& deck, const std::vector<std::string>& patterns,
                  const comm::Mesh& mesh, Log& log) {
  if (deck::holds_samples(deck.data)) return;
  if (mesh.world().rank() == 0) check_shards_alone(deck, patterns, log);
  mesh.world().barrier();  // no rank continues and writes if rank 0 refuses
}

TrainingData open_training_data(const deck::Deck& deck, const comm::Mesh& mesh, Log& log) {
  const comm::LongWait files;
  std::vector<std::string> patterns = deck.data.train;
  patterns.insert(patterns.end(), deck.data.valid.begin(), deck.data.valid.end());
  check_shards(deck, patterns, mesh, log);
  TrainingData data;
  const bool needed = deck::holds_samples(deck.data);
  if (needed) data.tokenizer = optional_tokenizer(deck, mesh, log);
  comm::together([&] {
    data.train = objective::open_data(deck, deck.data.train, data.tokenizer.get());
    data.valid = objective::open_data(deck, deck.data.valid, data.tokenizer.get());
  });
  // A warning of a missing tokenizer says nothing where the data are missing too.
  if (!needed) data.tokenizer = optional_tokenizer(deck, mesh, log);
  return data;
}

}  // namespace tern::campaign
