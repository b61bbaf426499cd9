#include "optimizer/update.hpp"

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "deck/optimizer_kind.hpp"
#include "optimizer/kind.hpp"

namespace tern::optimizer {

bool fully_sharded(const deck::Deck& deck, int ranks) {
  return deck::shard_of(deck.parallel) == deck::Shard::full && ranks > 1;
}

model::Division division(const deck::Deck& deck) {
  const deck::Shard shard = deck::shard_of(deck.parallel);
  if (shard == deck::Shard::full) return model::Division::units;
  const bool whole = deck::kind_of(deck.optimizer).whole_matrices && shard != deck::Shard::none;
  return whole ? model::Division::whole_matrices : model::Division::anywhere;
}

extern const Kind adamw, muon;

const Kind& kind(const deck::Optimizer& optimizer) {
  for (const Kind* each : {&adamw, &muon})
    if (optimizer.kind == each->name) return *each;
  TERN_REQUIRE(false, "optimizer kind '{}' passed the deck's check", optimizer.kind);
}

template <class T>
std::unique_ptr<Update<T>> make_update(const deck::Optimizer& optimizer,
                                       const model::ParameterTree& tree, Range owned,
                                       std::size_t decayed, Arena& arena) {
  return std::get<Maker<T>>(kind(optimizer).make)(optimizer, tree, owned, decayed, arena);
}

template std::unique_ptr<Update<float>> make_update(const deck::Optimizer&,
                                                    const model::ParameterTree&, Range, std::size_t,
                                                    Arena&);
template std::unique_ptr<Update<bf16>> make_update(const deck::Optimizer&,
                                                   const model::ParameterTree&, Range, std::size_t,
                                                   Arena&);
template std::unique_ptr<Update<fp16>> make_update(const deck::Optimizer&,
                                                   const model::ParameterTree&, Range, std::size_t,
                                                   Arena&);
template std::unique_ptr<Update<double>> make_update(const deck::Optimizer&,
                                                     const model::ParameterTree&, Range,
                                                     std::size_t, Arena&);

}  // namespace tern::optimizer
