#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "checks/diagnosis.hpp"

namespace tern::checks {
namespace {

const char* verdict(const CheckResult& r) {
  return r.passed()    ? "pass"
         : !r.complete ? "FAIL: not all written"
         : !r.repeats  ? "FAIL: does not repeat"
                       : "FAIL: error";
}

/// Appends a line.
template <class... Args>
void add(std::string& text, fmt::format_string<Args...> line, Args&&... args) {
  text += fmt::format(line, std::forward<Args>(args)...) + '\n';
}

void print_machines(const Diagnosis& found, std::string& text) {
  std::vector<std::string> versions;
  for (const auto& [what, version] : found.versions)
    versions.push_back(fmt::format("{} {}", what, version));
  add(text, "{}", fmt::join(versions, ", "));
  add(text, "{} rank(s), {} on this host", found.machines.size(), found.ranks_of_host);
  for (std::size_t rank = 0; rank < found.machines.size(); ++rank) {
    const Machine& m = found.machines[rank];
    add(text, "  rank {}: {}, {}, {:.1f} of {:.1f} GiB free", rank, m.host, m.device, m.free_gib,
        m.total_gib);
  }
}

void print_rates(const Diagnosis& found, std::string& text) {
  if (found.rates.empty()) return;
  add(text, "rates, minimum and maximum over ranks (all ranks at once):");
  for (const Rate& r : found.rates)
    add(text, "  {:<28} {:>9.1f} to {:>9.1f} {}", r.name, r.least, r.most, r.unit);
}

/// The checks of the first rank, all or only those that fail; then a summary of all ranks.
void print_checks(const Diagnosis& found, bool verbose, std::string& text) {
  if (found.failed.empty()) return;
  add(text, "operations, {}; error = ||out - ref|| / ||ref||:", found.checked);
  if (verbose || found.failed.front() > 0)
    add(text, "  {:<30} {:<28} {:>9} {:>9} {:>9}  {}", "operation", "shape", "error", "portable",
        "bar", "verdict");
  for (const CheckResult& r : found.checks)
    if (verbose || !r.passed())
      add(text, "  {:<30} {:<28} {:>9.1e} {:>9.1e} {:>9.1e}  {}", r.operation, r.shape, r.error,
          r.reference, r.bar, verdict(r));
  const auto worst = std::max_element(
      found.checks.begin(), found.checks.end(),
      [](const CheckResult& a, const CheckResult& b) { return a.error * b.bar < b.error * a.bar; });
  add(text, "  {} cases; nearest to its bar: {}, {}: {:.1e} of {:.1e}", found.checks.size(),
      worst->operation, worst->shape, worst->error, worst->bar);
  for (std::size_t rank = 0; rank < found.failed.size(); ++rank)
    if (found.failed[rank] > 0) add(text, "  rank {}: {} FAIL", rank, found.failed[rank]);
  add(text, "{}", found.passed() ? "all operations pass on all ranks" : "some operations FAIL");
}

}  // namespace

std::string to_json(const Diagnosis& found) {
  nlohmann::ordered_json all;
  for (const auto& [what, version] : found.versions) all["versions"][what] = version;
  for (const Machine& m : found.machines)
    all["ranks"].push_back({{"host", m.host},
                            {"device", m.device},
                            {"free_gib", m.free_gib},
                            {"total_gib", m.total_gib}});
  for (const Rate& r : found.rates)
    all["rates"].push_back({{"name", r.name.substr(r.name.find_first_not_of(' '))},
                            {"unit", r.unit},
                            {"least", r.least},
                            {"most", r.most}});
  if (found.failed.empty()) return all.dump(2);
  auto& checks = all["checks"];
  checks = {{"compared", found.checked}, {"failed_per_rank", found.failed}};
  for (const CheckResult& r : found.checks)
    checks["cases"].push_back({{"operation", r.operation},
                               {"shape", r.shape},
                               {"error", r.error},
                               {"portable", r.reference},
                               {"bar", r.bar},
                               {"verdict", verdict(r)}});
  return all.dump(2);
}

std::string to_text(const Diagnosis& found, bool verbose) {
  std::string text;
  print_machines(found, text);
  print_rates(found, text);
  print_checks(found, verbose, text);
  text.pop_back();
  return text;
}

}  // namespace tern::checks
