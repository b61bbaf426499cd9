#include "objective/objective.hpp"

#include "base/error.hpp"
#include "objective/kind.hpp"

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
  return std::get<Maker<T>>(kind(deck).make)(deck, shape, arena);
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
