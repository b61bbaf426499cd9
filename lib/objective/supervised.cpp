#include "objective/supervised.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "data/chat_source.hpp"
#include "deck/choices.hpp"
#include "objective/kind.hpp"

namespace tern::objective {
namespace {

std::size_t rows_of(const Shape& shape) { return shape.batch * shape.tokens; }

/// Maximum positions with a target per micro-batch: the last one of a row never has one.
std::size_t scored_of(const Shape& shape) { return shape.batch * (shape.tokens - 1); }

std::int32_t number(std::size_t value) { return static_cast<std::int32_t>(value); }

}  // namespace

template <class T>
Supervised<T>::Supervised(const deck::Deck& deck, const Shape& shape, Arena& arena)
    : head_{deck.objective.z_loss, static_cast<std::size_t>(deck.model.vocabulary),
            deck.model.logit_cap},
      table_(arena.measuring() ? 0 : shape.batch, shape.tokens),
      inputs_("inputs", shape, rows_of(shape), arena),
      order_("token order", shape, rows_of(shape), arena),
      positions_("positions", shape, rows_of(shape), arena),
      rows_("learned rows", shape, scored_of(shape), arena),
      targets_("targets", shape, scored_of(shape), arena),
      spans_("key spans", shape, rows_of(shape), arena),
      hulls_("span hulls", shape,
             shape.batch *
                 static_cast<std::size_t>(ops::Pattern::groups(static_cast<int>(shape.tokens))),
             arena),
      weights_(arena.vector<A>("loss weights", Term::data, scored_of(shape))) {}

/// Sets positions, spans and scored rows.
template <class T>
void Supervised<T>::lay_out(const data::Batch& batch) {
  const std::size_t T_row = batch.tokens_per_sequence;
  places_.assign(batch.inputs.size(), 0);
  learned_.clear();
  wanted_.clear();
  table_.clear();
  shared_ = false;
  for (const data::Document& document : batch.documents) {
    const std::size_t begin = document.begin, end = begin + document.tokens;
    TERN_REQUIRE(document.row < batch.sequences && end <= T_row,
                 "a conversation on [{}, {}) of row {}, of {} rows of {}", begin, end, document.row,
                 batch.sequences, T_row);
    shared_ = shared_ || begin > 0;
    for (std::size_t at = begin; at < end; ++at) {
      const std::size_t row = document.row * T_row + at;
      places_[row] = number(at - begin);
      table_.at(document.row, at).context = {number(begin), number(at) + 1};
      if (batch.targets[row] < 0) continue;
      learned_.push_back(number(row));
      wanted_.push_back(batch.targets[row]);
    }
  }
  table_.finish();
}

template <class T>
ops::Pattern Supervised<T>::pattern(const Device& space, std::size_t slot) {
  if (!shared_) return {};
  return table_.pattern(spans_.copy(space, table_.spans(), slot).data(),
                        hulls_.copy(space, table_.hulls(), slot).data());
}

template <class T>
Prepared<T> Supervised<T>::prepare(const ops::Context& context, const data::Batch& batch,
                                   std::size_t slot, bool evaluating) {
  lay_out(batch);
  data::sort_rows_by_token(batch.inputs, sorted_);
  const Device& space = context.space;
  const Vector<A> weights(weights_.data(), wanted_.size());
  const double tokens = static_cast<double>(batch.step.predicted());
  TERN_REQUIRE(evaluating || tokens >= static_cast<double>(wanted_.size()),
               "{} learned tokens in a step of {}", wanted_.size(), tokens);
  Kokkos::deep_copy(space, weights, evaluating ? A(1) : static_cast<A>(1 / tokens));
  Prepared<T> p;
  p.rows.tokens = inputs_.copy(space, batch.inputs, slot);
  p.rows.order = order_.copy(space, sorted_, slot);
  p.rows.positions = positions_.copy(space, places_, slot);
  p.pattern = pattern(space, slot);
  p.scored = {rows_.copy(space, learned_, slot), targets_.copy(space, wanted_, slot)};
  p.weights = weights;
  return p;
}

template <class T>
void Supervised<T>::accumulate(std::size_t, const std::vector<double>& losses,
                               const std::vector<std::int32_t>& best, std::vector<double>& sums) {
  TERN_REQUIRE(losses.size() == wanted_.size() && best.size() == wanted_.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    sums[0] += losses[i];
    sums[1] += best[i] == wanted_[i] ? 1 : 0;
  }
  sums[2] += static_cast<double>(losses.size());
}

template <class T>
Score Supervised<T>::finalize(const std::vector<double>& sums, bool) {
  return {
      sums[0] / sums[2], static_cast<std::int64_t>(sums[2]), {{"val/accuracy", sums[1] / sums[2]}}};
}

template class Supervised<float>;
template class Supervised<bf16>;
template class Supervised<fp16>;
template class Supervised<double>;

namespace {

std::string summary_of(const data::ChatSource& source, const deck::Data& d) {
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
  if (t.without_targets > 0)
    text += fmt::format("; {} left out with nothing to learn", t.without_targets);
  return text;
}

data::DataSet open_conversations(const deck::Deck& deck, const std::vector<std::string>& files,
                                 const text::Tokenizer* tokenizer) {
  const deck::Data& d = deck.data;
  data::ChatRowRules rules;
  rules.positions = context_positions(deck);
  rules.packing = d.packing;
  rules.cut = deck::cuts_long(d);
  rules.seed = static_cast<std::uint64_t>(deck.campaign.seed);
  auto source = std::make_unique<data::ChatSource>(
      data::training_tokens(text::read_conversations(files),
                            text::chat_rules(d.chat_template, d.thinking), *tokenizer,
                            static_cast<std::size_t>(d.threads)),
      rules);
  data::DataSet set;
  set.summary = summary_of(*source, d);
  set.fill = source->fill();
  const data::ChatTruncation& truncation = source->truncation();
  set.size = {source->rows(), truncation.conversations - truncation.left_out()};
  set.source = std::move(source);
  return set;
}

/// A first token is never a target.
std::size_t scored_positions_of(const deck::Deck& deck) { return context_positions(deck) - 1; }

}  // namespace

extern const Kind supervised{.name = "supervised",
                             .make = makers<Supervised>,
                             .open = open_conversations,
                             .scored = scored_positions_of,
                             .spans = true};

}  // namespace tern::objective
