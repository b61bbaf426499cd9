/// All that answering a file of requests keeps on a device, and how many pages its key-value cache
/// gets. Constructed with a measuring arena it is the memory plan, with an allocating one the run:
/// nothing is allocated after it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "generate/engine.hpp"

namespace tern::plan {

/// The deck's part of the engine's options, pages 0. What a tokenizer knows (stop tokens, how many
/// tokens there are) is the caller's to add.
generate::EngineOptions engine_options(const deck::Deck& deck);

struct ServingPlan {
  generate::EngineOptions options;                   // with pages
  std::size_t page_bytes = 0;                        // of one page, in all layers
  std::size_t cache_tokens = 0;                      // that the pages hold
  std::vector<std::pair<Term, std::size_t>> memory;  // bytes a rank, by term
  std::size_t total_bytes = 0;                       // of the arena on a rank's device
  std::size_t device_bytes = 0;                      // free on this rank's device now
  std::size_t usable_bytes = 0;                      // memory_utilization of this rank's device
};

/// As many pages as memory_utilization of the device holds beside weights, activations and
/// workspace, at most what batch x max_model_len tokens take; at least those of one request of
/// max_model_len tokens, or UserError with what to change. On the host, whose memory is
/// everybody's, of what is free. Collective over a
/// replica of the mesh, whose ranks agree on the least.
ServingPlan plan_serving(const deck::Deck& deck, const generate::EngineOptions& options,
                         const comm::Mesh& mesh);

/// Bytes of this rank's device that weights, work space and cache may take together.
std::size_t usable_for_serving(const deck::Deck& deck);

/// What options.pages take on this rank of the mesh, which may be imagined; nothing of the device.
ServingPlan measure_serving(const deck::Deck& deck, const generate::EngineOptions& options,
                            const comm::Mesh& mesh);

/// The plan as a table for people.
std::string table(const ServingPlan& plan);

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

}  // namespace tern::plan
