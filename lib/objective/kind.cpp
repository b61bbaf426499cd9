#include "objective/kind.hpp"

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "deck/rules.hpp"
#include "objective/detail/token_shards.hpp"

namespace tern::objective {

extern const Kind causal, block_diffusion, refinement, supervised;

namespace {

constexpr const Kind* kinds[] = {&causal, &block_diffusion, &refinement, &supervised};

}  // namespace

const Kind& kind(const deck::Deck& deck) {
  for (const Kind* each : kinds)
    if (deck.objective.kind == each->name) return *each;
  TERN_REQUIRE(false, "objective kind '{}' passed the deck's check", deck.objective.kind);
}

std::size_t row_positions(const deck::Deck& deck) { return kind(deck).positions(deck); }
std::size_t scored_positions(const deck::Deck& deck) { return kind(deck).scored(deck); }

data::DataSet open_data(const deck::Deck& deck, const std::vector<std::string>& files,
                        const text::Tokenizer* tokenizer) {
  const bool samples = deck::holds_samples(deck.data);
  TERN_REQUIRE(tokenizer || !samples, "samples without a tokenizer");
  return kind(deck).open(deck, files, samples ? tokenizer : nullptr);
}

// ---- next-token prediction

std::size_t context_positions(const deck::Deck& deck) {
  return static_cast<std::size_t>(deck.model.context);
}

double learned_positions(const deck::Deck&, const RowContents& row) { return row.learned; }

double causal_keys(const deck::Deck& deck, const RowContents& row) {
  const double tokens = row.tokens() / row.samples, window = static_cast<double>(deck.model.window);
  if (window > 0 && window < tokens) return window - window * (window - 1) / (2 * tokens);
  return (tokens + 1) / 2;
}

data::DataSet open_windows(const deck::Deck& deck, const std::vector<std::string>& files,
                           const text::Tokenizer*) {
  data::DataSet set = detail::open_shards(deck, files);
  set.source = std::make_unique<data::NextTokenSource>(*set.shards, context_positions(deck));
  return detail::with_windows(std::move(set), deck, files);
}

}  // namespace tern::objective
