/// Dry run of a deck that answers a file.
#pragma once
#include <string>
#include <vector>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "plan/throughput.hpp"

namespace tern::answer {

/// Number of requests, and mean tokens from a sample of them, as far as file, template and
/// tokenizer can be opened; assumptions in words. New tokens are the deck's max_tokens.
struct RequestForecast {
  plan::Requests requests;
  std::vector<std::string> assumed;
};
RequestForecast forecast_requests(const deck::Deck& deck);

/// Memory, throughput, time and cost, on the deck's ranks and on others. A shortage is no error:
/// the run may be planned for another machine. Collective; rank 0 prints.
std::string bulk_plan(const deck::Deck& deck, const generate::EngineOptions& options,
                      const comm::Mesh& mesh, const plan::PlannedDevice& device);

}  // namespace tern::answer
