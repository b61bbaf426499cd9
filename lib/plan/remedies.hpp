/// Remedies for a run that does not fit its device.
#pragma once
#include <string>

#include "plan/plan.hpp"

namespace tern::plan {

/// Empty if the plan fits the device with least free memory over all ranks. Else the missing
/// memory, and the changes tried (a smaller micro-batch at the same global batch, recomputation,
/// sharding), each with its planned memory and whether it suffices. Collective.
std::string shortage(const Plan& plan, const comm::Mesh& mesh);

}  // namespace tern::plan
