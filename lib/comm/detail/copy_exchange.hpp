/// PartExchange by the copy engines of the GPUs of one host.
#pragma once
#include <memory>

#include "comm/comm.hpp"
#include "comm/detail/wait.hpp"

namespace tern::comm::detail {

/// Whether the group has a size for an exchange, and NCCL's own variable NCCL_P2P_DISABLE allows it.
/// Exchanges of the host obey it too, so that runs without GPUs cover the collectives. Local.
bool exchange_serves(const Group& group);

/// Null on all ranks unless the group's GPUs reach each other's memory, which is tried out.
/// `operation`: for the watchdog. Collective.
std::unique_ptr<PartExchange> copy_exchange(Group& group, const Operation& operation, void* slots,
                                            std::size_t bytes);

}  // namespace tern::comm::detail
