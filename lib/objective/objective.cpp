#include "objective/objective.hpp"

#include "base/error.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"
#include "objective/block_diffusion.hpp"
#include "objective/causal.hpp"
#include "objective/refinement.hpp"
#include "objective/supervised.hpp"

namespace tern::objective {

template <class T>
Vector<const Accumulate<T>> Objective<T>::weights_of(const ops::Context&, std::size_t step,
                                                     const Prepared<T>&,
                                                     Vector<const Accumulate<T>>) {
  TERN_REQUIRE(false, "step {} of an objective of one", step);
}

template <class T>
std::unique_ptr<Objective<T>> make_objective(const deck::Deck& deck, const Shape& shape,
                                             Arena& arena) {
  if (deck.objective.kind == "causal") return std::make_unique<Causal<T>>(deck, shape, arena);
  if (deck.objective.kind == "block_diffusion")
    return std::make_unique<BlockDiffusion<T>>(deck, shape, arena);
  if (deck.objective.kind == "refinement")
    return std::make_unique<Refinement<T>>(deck, shape, arena);
  if (deck.objective.kind == "supervised")
    return std::make_unique<Supervised<T>>(deck, shape, arena);
  TERN_REQUIRE(false, "objective kind '{}' passed the deck's check", deck.objective.kind);
}

std::size_t row_positions(const deck::Deck& deck) {
  const auto context = static_cast<std::size_t>(deck.model.context);
  if (!deck::kind_of(deck).diffuses) return context;
  if (!deck::conditioned(deck)) return 2 * context;
  const auto question = static_cast<std::size_t>(deck.data.question_tokens);
  return question + 2 * (context - question);
}

std::size_t scored_positions(const deck::Deck& deck) {
  const std::size_t positions = row_positions(deck);
  if (deck::kind_of(deck).diffuses) return positions / 2;
  if (deck::kind_of(deck).answers) return positions - 1;  // a first token is never a target
  return positions;
}

template class Objective<float>;
template class Objective<bf16>;
template class Objective<fp16>;
template class Objective<double>;
template std::unique_ptr<Objective<float>> make_objective(const deck::Deck&, const Shape&, Arena&);
template std::unique_ptr<Objective<bf16>> make_objective(const deck::Deck&, const Shape&, Arena&);
template std::unique_ptr<Objective<fp16>> make_objective(const deck::Deck&, const Shape&, Arena&);
template std::unique_ptr<Objective<double>> make_objective(const deck::Deck&, const Shape&, Arena&);

}  // namespace tern::objective
