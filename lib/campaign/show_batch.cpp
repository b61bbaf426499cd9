#include "campaign/show_batch.hpp"

#include "base/error.hpp"
#include "base/json.hpp"
#include "campaign/writer.hpp"
#include "data/reader.hpp"
#include "deck/objective_kind.hpp"
#include "text/deck_tokenizer.hpp"

namespace tern::campaign {
namespace {

/// Text of a token in quotes, on one line; its bytes if it is part of a character.
std::string piece_of(std::int32_t token, const text::Tokenizer& tokenizer) {
  const std::string bytes = tokenizer.decode({token});
  try {
    return json_text(nlohmann::json(bytes));
  } catch (const nlohmann::json::exception&) {
    std::string text;
    for (const char c : bytes) text += fmt::format("<{:02x}>", static_cast<unsigned char>(c));
    return text;
  }
}

data::Batch first_batch(const plan::Plan& plan, const DataSet& train, int ranks) {
  const workload::Layout layout = workload::make_layout(plan.deck, ranks, train.size);
  data::ReaderOptions options{layout.per_rank, layout.tokens};
  options.seed = static_cast<std::uint64_t>(plan.deck.campaign.seed);
  options.accumulation = layout.accumulation;
  options.steps = layout.steps;
  data::Reader reader(*train.source, options, 0, static_cast<std::size_t>(ranks), 0);
  return reader.next();
}

/// Lines of a conversation in the batch; a token is learned if it is the target of a position.
std::string lines_of(const data::Batch& batch, const data::Document& document,
                     std::size_t conversation, const text::ChatTokens& chat,
                     const text::Tokenizer& tokenizer) {
  std::string text;
  for (std::size_t i = 0; i < document.tokens; ++i) {
    const std::size_t at = document.row * batch.tokens_per_sequence + document.begin + i;
    const bool learned = i > 0 && batch.targets[at - 1] >= 0;
    text += fmt::format("{:>8} {:>12} {:>5} {:>7}  {:<9} {}  {}\n", document.begin + i,
                        conversation, i, batch.inputs[at], text::name_of(chat.roles[i]),
                        learned ? "learned" : "   -   ", piece_of(batch.inputs[at], tokenizer));
  }
  return text;
}

}  // namespace

std::string first_rows(const plan::Plan& plan, const DataSet& train,
                       const text::Tokenizer& tokenizer, int ranks) {
  const data::Batch batch = first_batch(plan, train, ranks);
  const auto seed = static_cast<std::uint64_t>(plan.deck.campaign.seed);
  std::string text = fmt::format("first micro-batch of rank 0 of {}: {} rows, {} of {} positions\n",
                                 ranks, batch.samples.size(), batch.own.data_tokens,
                                 batch.sequences * batch.tokens_per_sequence);
  auto document = batch.documents.begin();
  for (std::size_t row = 0; row < batch.samples.size(); ++row) {
    const auto& numbers = train.chats->conversations_of(
        data::shuffled_row(batch.samples[row], train.source->rows(), seed));
    text += fmt::format("row {}: {} conversations\n", row, numbers.size());
    text += "position conversation place   token  role      learned  text\n";
    std::size_t used = 0;
    for (const std::size_t number : numbers) {
      TERN_REQUIRE(document != batch.documents.end() && document->row == row, "row {}", row);
      text += lines_of(batch, *document, number, train.chats->conversations()[number], tokenizer);
      used = (document++)->begin + train.chats->conversations()[number].tokens.size();
    }
    if (used < batch.tokens_per_sequence)
      text += fmt::format("{:>8} to {}: padding\n", used, batch.tokens_per_sequence - 1);
  }
  return text;
}

int show_batch(const plan::Plan& plan, comm::Group& group, Log& log) {
  const deck::Deck& deck = plan.deck;
  if (deck::kind_of(deck).samples != deck::ObjectiveKind::Samples::conversations)
    user_error(
        "--show-batch shows conversations with their roles, and &objective kind = '{}' learns "
        "none: set kind = 'supervised'",
        deck.objective.kind);
  if (group.rank() == 0) {
    const auto tokenizer = text::open_tokenizer(deck);
    const DataSet train = open_data(deck, deck.data.train, tokenizer.get());
    log.line("train: {}", train.summary);
    log.result("{}", first_rows(plan, train, *tokenizer, group.size()));
  }
  group.barrier();
  return 0;
}

}  // namespace tern::campaign
