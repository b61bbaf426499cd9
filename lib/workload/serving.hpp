/// Device memory of answering a file of requests. Constructed with a measuring arena it is the
/// memory plan, with an allocating one the run: nothing is allocated afterwards.
#pragma once
#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "generate/engine.hpp"

namespace tern::workload {

/// Temperature, top-p, top-k and seed of the deck.
ops::Sampling sampling_of(const deck::Deck& deck);

/// Engine options from the deck, with pages 0. The caller adds what the tokenizer knows (stop
/// tokens, vocabulary).
generate::EngineOptions engine_options(const deck::Deck& deck);

template <class T>
struct Serving {
  /// This rank's share of the model on `mesh`, which must outlive this. `options` with pages, from
  /// plan_serving.
  Serving(const deck::Deck& deck, const generate::EngineOptions& options, const comm::Mesh& mesh,
          Arena& arena);
  Serving(const Serving&) = delete;  // the parts refer to each other
  Serving& operator=(const Serving&) = delete;

  model::ParameterTree tree;
  ops::Context context;
  model::Parameters<T> parameters;  // filled by the caller before the first step
  generate::Engine<T> engine;       // prepared by the caller
};

}  // namespace tern::workload
