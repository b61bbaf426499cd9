#include "optimizer/update.hpp"

#include "base/error.hpp"
#include "optimizer/adamw.hpp"

namespace tern::optimizer {

template <class T>
std::unique_ptr<Update<T>> make_update(const deck::Optimizer& optimizer,
                                       const model::ParameterTree& tree, Range owned,
                                       Arena& arena) {
  if (optimizer.kind == "adamw") return std::make_unique<AdamW<T>>(optimizer, tree, owned, arena);
  TERN_REQUIRE(false, "optimizer kind '{}' passed the deck's check", optimizer.kind);
}

template std::unique_ptr<Update<float>> make_update(const deck::Optimizer&,
                                                    const model::ParameterTree&, Range, Arena&);
template std::unique_ptr<Update<bf16>> make_update(const deck::Optimizer&,
                                                   const model::ParameterTree&, Range, Arena&);
template std::unique_ptr<Update<double>> make_update(const deck::Optimizer&,
                                                     const model::ParameterTree&, Range, Arena&);

}  // namespace tern::optimizer
