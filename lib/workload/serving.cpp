#include "workload/serving.hpp"

#include <algorithm>

#include "deck/choices.hpp"
#include "model/declare.hpp"

namespace tern::workload {
namespace {

std::size_t size_of(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

ops::Sampling sampling_of(const deck::Deck& deck) {
  const deck::Generation& g = deck.generation;
  return {g.temperature, g.top_p, static_cast<int>(g.top_k),
          static_cast<std::uint64_t>(deck.campaign.seed)};
}

generate::EngineOptions engine_options(const deck::Deck& deck) {
  const deck::Generation& g = deck.generation;
  generate::EngineOptions options;
  options.batch = size_of(g.batch);
  options.max_model_len = size_of(g.max_model_len);
  if (deck::position_of(deck.model) == deck::Position::learned)
    options.max_model_len = std::min(options.max_model_len, size_of(deck.model.context));
  options.prefill_tokens = size_of(g.prefill_tokens);
  options.prefix_cache = g.prefix_cache;
  options.fp8_weights = deck::quantization_of(g) != deck::Quantization::none;
  options.fp8_inputs = deck::quantization_of(g) == deck::Quantization::fp8_dynamic;
  options.fp8_cache = deck::stores_cache_in_fp8(g);
  options.sampling = sampling_of(deck);
  return options;
}

template <class T>
Serving<T>::Serving(const deck::Deck& deck, const generate::EngineOptions& options,
                    const comm::Mesh& mesh, Arena& arena)
    : tree(model::declare(deck.model), 1, model::Division::anywhere, model::share_of(mesh)),
      context(ops::make_context(arena, true, deck.model.attention.c_str())),
      parameters(tree, model::Purpose::inference, arena),
      engine(deck.model, tree, parameters, options, arena) {
  context.tf32 = deck::compute_of(deck.precision) == deck::Compute::tf32;
}

template struct Serving<float>;
template struct Serving<bf16>;
template struct Serving<fp16>;

}  // namespace tern::workload
