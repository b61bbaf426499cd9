#include "objective/block_data.hpp"

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "objective/block_diffusion.hpp"
#include "objective/detail/token_shards.hpp"
#include "objective/kind.hpp"

namespace tern::objective {
namespace {

std::size_t positions(const deck::Deck& deck) {
  const auto context = static_cast<std::size_t>(deck.model.context);
  if (!deck::conditioned(deck)) return 2 * context;
  const auto question = static_cast<std::size_t>(deck.data.question_tokens);
  return question + 2 * (context - question);
}

std::size_t scored(const deck::Deck& deck) { return positions(deck) / 2; }

double mean_scored(const deck::Deck& deck, const RowContents& row) {
  return row.learned * (deck.objective.clip_low + deck.objective.clip_high) / 2;
}

/// Each sample: a prefix that attends to itself, and two copies of the rest, which attend to the
/// prefix and, on average, to half of the rest.
double mean_keys(const deck::Deck& deck, const RowContents& row) {
  const double prefix = row.prefix / row.samples;
  const double rest = (row.learned + row.others) / row.samples;
  const auto block = static_cast<double>(deck::block_tokens(deck.objective));
  const double pairs = prefix * prefix + 2 * rest * (prefix + (rest + block) / 2);
  return row.samples * pairs / static_cast<double>(positions(deck));
}

std::string summary_of(const data::SampleSource& source, std::size_t samples) {
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

data::DataSet open_samples(const deck::Deck& deck, const std::vector<std::string>& files,
                           const text::Tokenizer& tokenizer) {
  data::DataSet set;
  set.problems = data::read_samples(files, deck::plan_rule_of(deck.data),
                                    deck.data.notes ? data::Notes::keep : data::Notes::drop);
  auto source = std::make_unique<data::SampleSource>(set.problems, tokenizer, sample_rules(deck));
  set.summary = summary_of(*source, set.problems.size());
  set.fill = source->fill();
  set.size = {source->rows(), set.problems.size() - source->truncation().left_out};
  set.source = std::move(source);
  return set;
}

data::DataSet open(const deck::Deck& deck, const std::vector<std::string>& files,
                   const text::Tokenizer* tokenizer) {
  if (tokenizer) return open_samples(deck, files, *tokenizer);
  data::DataSet set = detail::open_shards(deck, files);
  const std::size_t mask = static_cast<std::size_t>(deck.model.vocabulary) - 1;
  if (set.shards->largest_token() == mask)
    user_error(
        "&data {} holds token {}, which block diffusion takes for its mask, the last of &model "
        "vocabulary = {}: write {} or more",
        fmt::join(files, ", "), mask, deck.model.vocabulary, deck.model.vocabulary + 1);
  set.source =
      std::make_unique<data::BlockSource>(*set.shards, static_cast<std::size_t>(deck.model.context),
                                          static_cast<std::size_t>(deck.objective.block_length));
  return detail::with_windows(std::move(set), deck, files);
}

}  // namespace

data::SampleRules sample_rules(const deck::Deck& deck) {
  const deck::Data& d = deck.data;
  data::SampleRules rules;
  rules.question_tokens = static_cast<std::size_t>(d.question_tokens);
  rules.plan_tokens = static_cast<std::size_t>(d.plan_tokens);
  rules.execution_tokens = static_cast<std::size_t>(d.execution_tokens);
  rules.hierarchical = deck::hierarchical(deck.objective);
  rules.plan_block = static_cast<std::size_t>(deck.objective.plan_block);
  rules.execution_block = static_cast<std::size_t>(deck::block_tokens(deck.objective));
  rules.conditioned = deck::conditioned(deck);
  rules.packing = d.packing;
  rules.cut = deck::cuts_long(d);
  rules.positions = positions(deck);
  rules.seed = static_cast<std::uint64_t>(deck.campaign.seed);
  rules.threads = static_cast<std::size_t>(d.threads);
  return rules;
}

extern const Kind block_diffusion{.name = "block_diffusion",
                                  .make = makers<BlockDiffusion>,
                                  .open = open,
                                  .positions = positions,
                                  .scored = scored,
                                  .mean_scored = mean_scored,
                                  .mean_keys = mean_keys,
                                  .spans = true};

}  // namespace tern::objective
