/// Device memory of answering a file of requests, and how many pages its key-value cache gets.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "plan/devices.hpp"
#include "workload/serving.hpp"

namespace tern::plan {

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
                         const comm::Mesh& mesh, const PlannedDevice& device = {});

/// Bytes of this rank's device that weights, work space and cache may take together.
std::size_t usable_for_serving(const deck::Deck& deck, const PlannedDevice& device = {});

/// What options.pages take on this rank of the mesh, which may be imagined; nothing of the device.
ServingPlan measure_serving(const deck::Deck& deck, const generate::EngineOptions& options,
                            const comm::Mesh& mesh);

/// The plan as a table for people.
std::string table(const ServingPlan& plan);

}  // namespace tern::plan
