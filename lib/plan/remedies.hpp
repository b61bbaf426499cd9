/// What to do when a run does not fit its device.
#pragma once
#include "plan/plan.hpp"

namespace tern::plan {

/// Throws UserError unless the plan fits the least free device of all ranks: with the plan's table
/// and the changes that would make it fit (a smaller per-rank batch at the same global one,
/// recomputation, sharding), each with its planned memory. Collective.
void require_fit(const Plan& plan, const deck::Deck& deck, comm::Group& group);

/// The changes tried, as a table; of those that are not enough alone, that too. Collective.
std::string remedies(const deck::Deck& deck, comm::Group& group, std::size_t room);

}  // namespace tern::plan
