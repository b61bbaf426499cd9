#include "campaign/inputs.hpp"

#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "job/dry_run.hpp"
#include "job/run_directory.hpp"
#include "objective/kind.hpp"
#include "text/deck_tokenizer.hpp"
#include "weights/weights.hpp"

namespace tern::campaign {
namespace {

/// Weights that training starts from, unless a run is resumed.
void check_loaded(const deck::Deck& deck, const job::Options& options, Log& log) {
  const bool resumes = options.resume && job::RunDirectory{deck.output.directory}.holds_a_run();
  if (deck.model.load.empty() || resumes) return;
  const bool partly = deck::loads_matching(deck.model);
  weights::check_weights(deck.model, deck.model.load, log,
                         partly ? weights::Tensors::matching : weights::Tensors::all);
}

/// Inputs of an evaluation, or of text that is generated.
void check_use(const deck::Deck& deck, const comm::Mesh& mesh, Log& log) {
  const bool evaluates = deck::task_of(deck) == deck::Task::evaluate;
  const auto tokenizer =
      !evaluates || deck::holds_samples(deck.data) ? text::open_tokenizer(deck) : nullptr;
  if (evaluates) {
    check_shards(deck, deck.data.valid, mesh, log);
    log.line("valid: {}", objective::open_data(deck, deck.data.valid, tokenizer.get()).summary);
  }
  weights::check_weights(deck.model, weights::weights_source(deck), log);
}

}  // namespace

std::optional<TrainingData> open_planned_data(const deck::Deck& deck, const job::Options& options,
                                              const comm::Mesh& mesh, Log& log) {
  const bool trains = deck::trains(deck);
  const bool counts = deck.campaign.epochs > 0 || deck::counts_samples(deck.batch);
  if (options.dry_run ? options.without_data : !(trains && counts)) return std::nullopt;
  return job::opened(options, [&]() -> std::optional<TrainingData> {
    if (trains) {
      if (options.dry_run) check_loaded(deck, options, log);
      return open_training_data(deck, mesh, log);
    }
    check_use(deck, mesh, log);
    return std::nullopt;
  });
}

}  // namespace tern::campaign
