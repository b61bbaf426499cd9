/// Memory, time and cost of a deck on other numbers of ranks.
#pragma once
#include <string>

#include "plan/plan.hpp"
#include "plan/serving.hpp"
#include "plan/throughput.hpp"

namespace tern::plan {

/// Table of training on 1, 2, 4, 8 data ranks, and on to as many as are planned for, at the deck's
/// tensor x pipeline: memory of rank 0 for each kind of sharding; for the deck's own kind throughput, steps within max_hours, time and
/// cost. `plan`: the deck's, batch resolved; its rate is scaled in proportion to the estimate, or
/// without an estimate to the number of ranks. Cells of impossible layouts are empty. Local.
std::string layouts(const deck::Deck& deck, const Plan& plan, const comm::Extents& extents);

/// Table of answering with 1, 2, 4 and 8 tensor ranks: memory of rank 0 without the cache, and
/// cache tokens that fit the rest of `usable_bytes`; then with as many data ranks. Both with
/// requests/s over all ranks, time and cost where `throughput` has a rate. Local.
std::string layouts(const deck::Deck& deck, const generate::EngineOptions& options,
                    std::size_t usable_bytes, const Throughput& throughput);

}  // namespace tern::plan
