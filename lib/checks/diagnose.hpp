/// Diagnosis of this machine: devices and versions, the rates a campaign depends on, and whether
/// the operations compute correctly.
#pragma once
#include <cstdint>

#include "base/log.hpp"
#include "comm/comm.hpp"

namespace tern::checks {

struct DiagnoseOptions {
  bool rates = true, checks = true;
  bool verbose = false;    // list all checks, not only those that fail
  bool json = false;       // print one JSON object, with all checks
  std::uint64_t seed = 1;  // for the checks' inputs
};

/// Prints what the ranks find (diagnosis.hpp) on the first one. Collective over all ranks of
/// `group`. Returns the program's exit code: 0, or 1 if a check fails on any rank.
int diagnose(const DiagnoseOptions& options, const comm::Session& session, comm::Group& group,
             Log& log);

}  // namespace tern::checks
