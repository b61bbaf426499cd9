/// What a dry run says of a deck that answers a file.
#pragma once
#include <string>
#include <vector>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "plan/throughput.hpp"

namespace tern::answer {

/// The file's requests as far as it, its template and the tokenizer can be opened: their number,
/// and tokens by a sample of them; and in words what was assumed. New tokens are the most that the
/// deck allows.
struct ForeseenRequests {
  plan::Requests requests;
  std::vector<std::string> assumed;
};
ForeseenRequests foresee(const deck::Deck& deck);

/// Memory, throughput, time and cost, on the deck's ranks and on others. Perhaps on another machine
/// than that of the run: a shortage is no error. Collective; for rank 0 to print.
std::string bulk_plan(const deck::Deck& deck, const generate::EngineOptions& options,
                      const comm::Mesh& mesh, const plan::PlannedDevice& device);

}  // namespace tern::answer
