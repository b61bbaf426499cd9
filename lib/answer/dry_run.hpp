/// Dry run of a deck that answers a file.
#pragma once
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "job/options.hpp"
#include "plan/throughput.hpp"

namespace tern::answer {

/// Number of requests, and mean tokens from a sample of them, or assumptions in words if file and
/// tokenizer are not opened (`without_data`). New tokens are the deck's max_tokens.
struct RequestForecast {
  plan::Requests requests;
  std::vector<std::string> assumed;
};
RequestForecast forecast_requests(const deck::Deck& deck, bool without_data);

/// Memory, throughput, time and cost, on the deck's ranks and on others. A shortage is no error:
/// the run may be planned for another machine. Throws UserError for requests, tokenizer or weights
/// that the run could not read, unless options.without_data. Collective; rank 0 prints.
std::string bulk_plan(const deck::Deck& deck, const generate::EngineOptions& engine,
                      const comm::Mesh& mesh, const job::Options& options, Log& log);

}  // namespace tern::answer
