#include "campaign/show_batch.hpp"

#include "base/error.hpp"
#include "data/reader.hpp"
#include "deck/objective_kind.hpp"
#include "objective/kind.hpp"
#include "text/deck_tokenizer.hpp"

namespace tern::campaign {
namespace {

data::Batch first_batch(const plan::Plan& plan, const data::DataSet& train, int ranks) {
  const workload::Layout layout = workload::make_layout(plan.deck, ranks, train.size);
  data::ReaderOptions options{layout.per_rank, layout.tokens};
  options.seed = static_cast<std::uint64_t>(plan.deck.campaign.seed);
  options.accumulation = layout.accumulation;
  options.steps = layout.steps;
  data::Reader reader(*train.source, options, 0, static_cast<std::size_t>(ranks), 0);
  return reader.next();
}

}  // namespace

std::string first_rows(const plan::Plan& plan, const data::DataSet& train,
                       const text::Tokenizer& tokenizer, int ranks) {
  const data::Batch batch = first_batch(plan, train, ranks);
  const auto seed = static_cast<std::uint64_t>(plan.deck.campaign.seed);
  std::string text = fmt::format("first micro-batch of rank 0 of {}: {} rows, {} of {} positions\n",
                                 ranks, batch.samples.size(), batch.own.data_tokens,
                                 batch.sequences * batch.tokens_per_sequence);
  for (std::size_t at = 0; at < batch.samples.size(); ++at)
    text += train.source->show(data::shuffled_row(batch.samples[at], train.source->rows(), seed),
                               at, batch, tokenizer);
  return text;
}

int show_batch(const plan::Plan& plan, comm::Group& group, Log& log) {
  const deck::Deck& deck = plan.deck;
  if (!deck::kind_of(deck).shows_rows)
    user_error(
        "--show-batch shows conversations with their roles, and &objective kind = '{}' learns "
        "none: set kind = 'supervised'",
        deck.objective.kind);
  if (group.rank() == 0) {
    const auto tokenizer = text::open_tokenizer(deck);
    const data::DataSet train = objective::open_data(deck, deck.data.train, tokenizer.get());
    log.line("train: {}", train.summary);
    log.result("{}", first_rows(plan, train, *tokenizer, group.size()));
  }
  group.barrier();
  return 0;
}

}  // namespace tern::campaign
