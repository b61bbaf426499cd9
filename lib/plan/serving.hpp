/// Device memory of answering a file of requests, and the number of pages of its key-value cache.
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
  generate::EngineOptions options;                   // pages set
  std::size_t page_bytes = 0;                        // per page, over all layers
  std::size_t cache_tokens = 0;                      // capacity of the pages
  std::vector<std::pair<Term, std::size_t>> memory;  // bytes per rank, by term
  std::size_t total_bytes = 0;                       // arena per rank
  std::size_t device_bytes = 0;                      // free on this rank's device now
  std::size_t usable_bytes = 0;                      // memory_utilization of this rank's device
};

/// As many pages as fit memory_utilization of the device (on the host, of its free memory) next to
/// weights, activations and workspace; at most those of batch x max_model_len tokens. Throws
/// UserError with the remedy if one request of max_model_len tokens does not fit. Collective over a
/// replica of the mesh, whose ranks agree on the minimum.
ServingPlan plan_serving(const deck::Deck& deck, const generate::EngineOptions& options,
                         const comm::Mesh& mesh, const PlannedDevice& device = {});

/// Bytes of this rank's device available to weights, workspace and cache together.
std::size_t usable_for_serving(const deck::Deck& deck, const PlannedDevice& device = {});

/// Memory with options.pages on this rank of the mesh, which may be for planning; the device is not
/// queried.
ServingPlan measure_serving(const deck::Deck& deck, const generate::EngineOptions& options,
                            const comm::Mesh& mesh);

/// The plan as a printable table.
std::string table(const ServingPlan& plan);

}  // namespace tern::plan
