#include "objective/objective.hpp"

#include "base/error.hpp"
#include "objective/causal.hpp"

namespace tern::objective {

template <class T>
std::unique_ptr<Objective<T>> make_objective(const deck::Deck& deck, const Shape& shape,
                                             Arena& arena) {
  if (deck.objective.kind == "causal") return std::make_unique<Causal<T>>(deck, shape, arena);
  TERN_REQUIRE(false, "objective kind '{}' passed the deck's check", deck.objective.kind);
}

template std::unique_ptr<Objective<float>> make_objective(const deck::Deck&, const Shape&, Arena&);
template std::unique_ptr<Objective<bf16>> make_objective(const deck::Deck&, const Shape&, Arena&);
template std::unique_ptr<Objective<double>> make_objective(const deck::Deck&, const Shape&, Arena&);

}  // namespace tern::objective
