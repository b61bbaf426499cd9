/// What this machine gives: its devices and versions, the rates a campaign lives on, and whether
/// the operations compute right here.
#pragma once
#include <cstdint>

#include "base/log.hpp"
#include "comm/comm.hpp"

namespace tern::checks {

struct DiagnoseOptions {
  bool rates = true, checks = true;
  std::uint64_t seed = 1;  // of the checks' inputs
};

/// Prints a table a part on the first rank. Collective over all ranks of `group`; every rank runs
/// the checks on its own device. Returns the program's exit code: 0, or 1 where a check fails on
/// any rank.
int diagnose(const DiagnoseOptions& options, const comm::Session& session, comm::Group& group,
             Log& log);

}  // namespace tern::checks
