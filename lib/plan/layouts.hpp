/// What a deck would take on other numbers of ranks.
#pragma once
#include <string>

#include "plan/plan.hpp"
#include "plan/serving.hpp"
#include "plan/throughput.hpp"

namespace tern::plan {

/// Training on 1, 2, 4 and 8 data ranks of the deck's tensor x pipeline: memory of rank 0 with each
/// way of sharding; and with the deck's own, throughput, the steps that max_hours lets be done,
/// time and cost. `plan`: of the deck, its batch resolved; its rate is scaled as the estimate is,
/// or where there is none by the ranks. A layout that cannot be is left open. Local.
std::string layouts(const deck::Deck& deck, const Plan& plan, const comm::Extents& extents);

/// Answering with 1, 2, 4 and 8 tensor ranks: memory of rank 0 but for the cache, and the tokens of
/// cache that the rest of `usable_bytes` holds; and with as many data ranks. Where `throughput`
/// tells, both with requests a second of all ranks, time and cost. Local.
std::string layouts(const deck::Deck& deck, const generate::EngineOptions& options,
                    std::size_t usable_bytes, const Throughput& throughput);

}  // namespace tern::plan
