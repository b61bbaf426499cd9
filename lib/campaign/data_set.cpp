#include "campaign/data_set.hpp"

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "campaign/writer.hpp"
#include "comm/agreement.hpp"
#include "comm/waits.hpp"
#include "data/shard_origin.hpp"
#include "deck/choices.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"
#include "objective/objective.hpp"
#include "optimizer/update.hpp"
#include "text/deck_tokenizer.hpp"

namespace tern::campaign {
namespace {

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

std::string describe(const data::SampleSource& source, std::size_t samples) {
  const data::Truncation& t = source.truncation();
  std::string text = fmt::format("{} samples in {} rows of {} positions, {:.1f}% filled", samples,
                                 source.rows(), source.positions(), 100 * source.fill());
  if (t.questions + t.plans + t.executions > 0)
    text += fmt::format(
        "; too long: {} questions, {} plans, {} executions (the longest have {}, {} and {} tokens)"
        "; {} samples left out",
        t.questions, t.plans, t.executions, t.longest_question, t.longest_plan, t.longest_execution,
        t.left_out);
  return text;
}

void open_samples(DataSet& set, const deck::Deck& deck, const std::vector<std::string>& patterns,
                  const text::Tokenizer& tokenizer) {
  set.samples = data::read_samples(patterns, deck::plan_rule_of(deck.data),
                                   deck.data.notes ? data::Notes::keep : data::Notes::drop);
  auto source = std::make_unique<data::SampleSource>(set.samples, tokenizer, sample_rules(deck));
  set.summary = describe(*source, set.samples.size());
  set.fill = source->fill();
  set.size = {source->rows(), set.samples.size() - source->truncation().left_out};
  set.source = std::move(source);
}

std::string describe(const data::ChatSource& source, const deck::Data& d) {
  const data::ChatTruncation& t = source.truncation();
  const data::ChatAnswers& answers = source.answers();
  std::string text = fmt::format(
      "{} conversations in {} rows of {} positions, {:.1f}% filled; {} of {} answers learned, "
      "{:.1f}% of the tokens",
      t.conversations, source.rows(), source.positions(), 100 * source.fill(), answers.learned,
      answers.all, 100 * source.learned());
  if (answers.learned < answers.all && d.chat_template == "qwen3")
    text += " ('qwen3' learns the last answer of a conversation, 'chatml' all)";
  if (t.too_long > 0)
    text += fmt::format("; {} too long (the longest has {} tokens), {} of them cut, {} left out",
                        t.too_long, t.longest, t.cut, t.too_long - t.cut);
  if (t.silent > 0) text += fmt::format("; {} left out with nothing to learn", t.silent);
  return text;
}

void open_conversations(DataSet& set, const deck::Deck& deck,
                        const std::vector<std::string>& patterns,
                        const text::Tokenizer& tokenizer) {
  const deck::Data& d = deck.data;
  data::ChatRowRules rules;
  rules.positions = objective::row_positions(deck);
  rules.packing = d.packing;
  rules.cut = deck::cuts_long(d);
  rules.seed = static_cast<std::uint64_t>(deck.campaign.seed);
  auto source = std::make_unique<data::ChatSource>(
      data::training_tokens(text::read_conversations(patterns),
                            text::chat_rules(d.chat_template, d.thinking), tokenizer,
                            size(d.threads)),
      rules);
  set.summary = describe(*source, d);
  set.fill = source->fill();
  const data::ChatTruncation& truncation = source->truncation();
  set.size = {source->rows(), truncation.conversations - truncation.left_out()};
  set.chats = source.get();
  set.source = std::move(source);
}

void open_shards(DataSet& set, const deck::Deck& deck, const std::vector<std::string>& patterns) {
  const std::size_t context = size(deck.model.context);
  set.shards = std::make_unique<data::Shards>(patterns, size(deck.model.vocabulary),
                                              size(deck.data.threads));
  if (deck::kind_of(deck).diffuses) {
    const std::size_t mask = size(deck.model.vocabulary) - 1;
    if (set.shards->largest_token() == mask)
      user_error(
          "&data {} holds token {}, which block diffusion takes for its mask, the last of &model "
          "vocabulary = {}: write {} or more",
          fmt::join(patterns, ", "), mask, deck.model.vocabulary, deck.model.vocabulary + 1);
    set.source = std::make_unique<data::BlockSource>(*set.shards, context,
                                                     size(deck.objective.block_length));
  } else {
    set.source = std::make_unique<data::NextTokenSource>(*set.shards, context);
  }
  if (set.source->rows() == 0)
    user_error(
        "&data {} holds {} tokens, too few for one sequence of &model context = {} + 1: add data "
        "or shorten the context",
        fmt::join(patterns, ", "), set.shards->tokens(), context);
  set.size = {set.source->rows(), set.source->rows()};
  set.summary = fmt::format("{:.1f} M tokens", static_cast<double>(set.shards->tokens()) / 1e6);
}

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

}  // namespace

data::SampleRules sample_rules(const deck::Deck& deck) {
  const deck::Data& d = deck.data;
  data::SampleRules rules;
  rules.question_tokens = size(d.question_tokens);
  rules.plan_tokens = size(d.plan_tokens);
  rules.execution_tokens = size(d.execution_tokens);
  rules.hierarchical = deck::hierarchical(deck.objective);
  rules.plan_block = size(deck.objective.plan_block);
  rules.execution_block =
      size(rules.hierarchical ? deck.objective.execution_block : deck.objective.block_length);
  rules.conditioned = deck::conditioned(deck);
  rules.packing = d.packing;
  rules.cut = deck::cuts_long(d);
  rules.positions = objective::row_positions(deck);
  rules.seed = static_cast<std::uint64_t>(deck.campaign.seed);
  rules.threads = size(d.threads);
  return rules;
}

DataSet open_data(const deck::Deck& deck, const std::vector<std::string>& patterns,
                  const text::Tokenizer* tokenizer) {
  DataSet set;
  if (deck::holds_samples(deck.data)) {
    TERN_REQUIRE(tokenizer, "samples without a tokenizer");
    if (deck::kind_of(deck).samples == deck::ObjectiveKind::Samples::conversations)
      open_conversations(set, deck, patterns, *tokenizer);
    else
      open_samples(set, deck, patterns, *tokenizer);
  } else {
    open_shards(set, deck, patterns);
  }
  return set;
}

namespace {

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
    data.train = open_data(deck, deck.data.train, data.tokenizer.get());
    data.valid = open_data(deck, deck.data.valid, data.tokenizer.get());
  });
  // A warning of a missing tokenizer says nothing where the data are missing too.
  if (!needed) data.tokenizer = optional_tokenizer(deck, mesh, log);
  return data;
}

}  // namespace tern::campaign
