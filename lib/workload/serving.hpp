/// Everything that answering a file of requests keeps on a device. Constructed with a measuring
/// arena it is the memory plan, with an allocating one the run: nothing is allocated after it.
#pragma once
#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "generate/engine.hpp"

namespace tern::workload {

/// The deck's part of the engine's options, pages 0. What a tokenizer knows (stop tokens, how many
/// tokens there are) is the caller's to add.
generate::EngineOptions engine_options(const deck::Deck& deck);

template <class T>
struct Serving {
  /// The share of this rank of `mesh`, which must outlive this. `options` with pages, as
  /// plan_serving gives them.
  Serving(const deck::Deck& deck, const generate::EngineOptions& options, const comm::Mesh& mesh,
          Arena& arena);
  Serving(const Serving&) = delete;  // the parts refer to each other
  Serving& operator=(const Serving&) = delete;

  model::ParameterTree tree;
  ops::Context context;
  model::Parameters<T> parameters;  // to be filled by the caller before the first step
  generate::Engine<T> engine;       // to be prepared
};

}  // namespace tern::workload
