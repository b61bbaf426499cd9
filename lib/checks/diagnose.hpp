/// Diagnosis of this machine: devices and versions, the rates a campaign depends on, and whether
/// the operations compute correctly.
#pragma once
#include <cstdint>

#include "base/log.hpp"
#include "comm/comm.hpp"

namespace tern::checks {

struct DiagnoseOptions {
  bool rates = true, checks = true;
  std::uint64_t seed = 1;  // for the checks' inputs
};

/// Prints one table per part on the first rank. Collective over all ranks of `group`; every rank
/// runs the checks on its own device. Returns the program's exit code: 0, or 1 if a check fails on
/// any rank.
int diagnose(const DiagnoseOptions& options, const comm::Session& session, comm::Group& group,
             Log& log);

}  // namespace tern::checks
