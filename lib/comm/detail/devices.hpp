/// Which device of its node a rank takes.
#pragma once
#include <string>
#include <vector>

namespace tern::comm::detail {

/// The number, among the `visible` devices, that a rank takes. All of a node are visible to each
/// rank, or each sees its own alone (srun --gpus-per-task=1). UserError if there is none; `why`:
/// what the driver says.
int device_of(int local_rank, int visible, const std::string& why);

/// UserError if two of the ranks of this node took the same device; `taken`: the devices' names by
/// local rank.
void require_own_devices(const std::vector<std::string>& taken);

}  // namespace tern::comm::detail
