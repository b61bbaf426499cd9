/// PartExchange by the copy engines of two GPUs of one host.
#pragma once
#include <memory>

#include "comm/comm.hpp"
#include "comm/detail/wait.hpp"

namespace tern::comm::detail {

/// Null on all ranks unless the group's two GPUs reach each other's memory, which is tried out.
/// `operation`: for the watchdog. Collective.
std::unique_ptr<PartExchange> copy_exchange(Group& group, const Operation& operation, void* slots,
                                            std::size_t bytes);

}  // namespace tern::comm::detail
