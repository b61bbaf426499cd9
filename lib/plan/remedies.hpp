/// What to do when a run does not fit its device.
#pragma once
#include <string>

#include "plan/plan.hpp"

namespace tern::plan {

/// Empty if the plan fits the least free device of all ranks. Else what is missing, and the changes
/// that would make it fit (a smaller per-rank batch at the same global one, recomputation,
/// sharding), each with its planned memory; of those that are not enough, that too. Collective.
std::string shortage(const Plan& plan, const comm::Mesh& mesh);

}  // namespace tern::plan
