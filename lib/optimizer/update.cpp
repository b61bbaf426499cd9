#include "optimizer/update.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "optimizer/adamw.hpp"
#include "optimizer/muon.hpp"

namespace tern::optimizer {

bool fully_sharded(const deck::Deck& deck, int ranks) {
  return deck.parallel.shard == "full" && ranks > 1;
}

model::Division division(const deck::Deck& deck) {
  if (deck.parallel.shard == "full") return model::Division::units;
  const bool whole = deck.optimizer.kind == "muon" && deck.parallel.shard != "none";
  return whole ? model::Division::whole_matrices : model::Division::anywhere;
}

template <class T>
std::unique_ptr<Update<T>> make_update(const deck::Optimizer& optimizer,
                                       const model::ParameterTree& tree, Range owned,
                                       std::size_t decayed, Arena& arena) {
  if (optimizer.kind == "adamw")
    return std::make_unique<AdamW<T>>(optimizer, Range{0, tree.span()}, owned, decayed, arena);
  if (optimizer.kind == "muon") return std::make_unique<Muon<T>>(optimizer, tree, owned, arena);
  TERN_REQUIRE(false, "optimizer kind '{}' passed the deck's check", optimizer.kind);
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
