/// What `diagnose` finds on the ranks of a job.
#pragma once
#include <string>
#include <vector>

#include "checks/operations.hpp"
#include "comm/comm.hpp"

namespace tern::checks {

struct Machine {
  std::string host, device;
  double free_gib = 0, total_gib = 0;  // device memory
  std::string processors;              // that the rank may run on: "0-7,16"
  int threads = 0;                     // that compute on them; 0 with a GPU
  // Its GPU; empty on the host.
  std::string bus;   // address
  std::string near;  // processors close to it; empty if unknown
  int numa_node = -1, nvlinks = 0;
};

/// What a device should give. 0: unknown.
struct Expected {
  double rate = 0;
  std::string basis;  // "H200's data sheet"
};

/// Rate of all ranks at once, in `unit` per second: the slowest and the fastest rank's.
struct Rate {
  std::string name, unit;
  double least, most;
  int slowest = 0;  // rank
  Expected expected = {};
};
namespace rate_name {
constexpr const char* fp8 = "matrix product, fp8";
constexpr const char* bf16 = "matrix product, bf16";
constexpr const char* fp16 = "matrix product, fp16";
constexpr const char* tf32 = "matrix product, tf32";
constexpr const char* fp32 = "matrix product, float";
constexpr const char* attention_forward = "attention forward, heads of 64";
constexpr const char* attention_backward = "attention backward, heads of 64";
constexpr const char* busiest_link = "on the busiest link";  // of the all-reduce
}  // namespace rate_name

/// Two ranks, first < second. Measured one after the other, about 0.1 s each.
constexpr int most_ranks_in_pairs = 64;
struct Pair {
  int first = 0, second = 0;
  std::string connection;  // "NVLink", "same host", "network", ...
  double rate = 0;         // GB/s per direction, both directions at once
  Expected expected = {};
};

/// A line of a deck that suits this machine, and why.
struct DeckLine {
  std::string group, name, value, reason;
};

struct Diagnosis {
  std::vector<std::pair<std::string, std::string>> versions;  // what, version
  int ranks_of_host = 0;
  std::vector<Machine> machines;    // per rank
  std::vector<Rate> rates;          // empty if not measured
  std::vector<Pair> pairs;          // all, in order; empty if not measured
  std::size_t rows_to_fill = 0;     // rows of a product that fill a rank's device; 0: not measured
  const char* checked = "";         // what is compared with what
  std::vector<CheckResult> checks;  // of this rank; empty if not checked
  std::vector<int> failed;          // checks that fail, per rank
  std::vector<std::string> warnings;
  std::vector<DeckLine> deck;  // recommended; empty if no rates are measured

  bool passed() const;
  /// Null if not measured.
  const Rate* rate(const std::string& name) const;
};

struct DiagnoseOptions;

/// Collective over all ranks of `group`; each rank checks its own device.
Diagnosis examine(const DiagnoseOptions& options, const comm::Session& session, comm::Group& group);

/// A table per part. Of the checks, those that fail, or if `verbose` all, and a summary.
std::string to_text(const Diagnosis& found, bool verbose);
/// The same as one JSON object, with all checks.
std::string to_json(const Diagnosis& found);

}  // namespace tern::checks
