/// What `diagnose` finds on the ranks of a job.
#pragma once
#include <string>
#include <vector>

#include "checks/operations.hpp"
#include "comm/comm.hpp"

namespace tern::checks {

struct Machine {
  std::string host, device;
  double free_gib, total_gib;  // device memory
};

/// Rate of all ranks at once, in `unit` per second: the slowest and the fastest rank's.
struct Rate {
  std::string name, unit;
  double least, most;
};

struct Diagnosis {
  std::vector<std::pair<std::string, std::string>> versions;  // what, version
  int ranks_of_host = 0;
  std::vector<Machine> machines;    // per rank
  std::vector<Rate> rates;          // empty if not measured
  const char* checked = "";         // what is compared with what
  std::vector<CheckResult> checks;  // of this rank; empty if not checked
  std::vector<int> failed;          // checks that fail, per rank

  bool passed() const;
};

struct DiagnoseOptions;

/// Collective over all ranks of `group`; each rank checks its own device.
Diagnosis examine(const DiagnoseOptions& options, const comm::Session& session, comm::Group& group);

/// A table per part. Of the checks, those that fail, or if `verbose` all, and a summary.
std::string to_text(const Diagnosis& found, bool verbose);
/// The same as one JSON object, with all checks.
std::string to_json(const Diagnosis& found);

}  // namespace tern::checks
