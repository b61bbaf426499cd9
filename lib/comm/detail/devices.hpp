/// Assignment of a node's devices to ranks.
#pragma once
#include <string>
#include <vector>

namespace tern::comm::detail {

/// Index of a rank's device among the `visible` ones. Each rank sees all devices of its node, or
/// only its own (srun --gpus-per-task=1). UserError if there is none; `why`: the driver's message.
int device_of(int local_rank, int visible, const std::string& why);

/// UserError if two ranks of this node took the same device; `taken`: device UUIDs by local rank.
void require_own_devices(const std::vector<std::string>& taken);

}  // namespace tern::comm::detail
