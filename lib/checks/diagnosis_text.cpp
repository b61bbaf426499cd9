#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "checks/diagnosis.hpp"

namespace tern::checks {
namespace {

const char* verdict(const CheckResult& r) {
  return r.passed()    ? "pass"
         : !r.complete ? "FAIL: output incomplete"
         : !r.repeats  ? "FAIL: not reproducible"
                       : "FAIL: error";
}

/// Appends a line.
template <class... Args>
void add(std::string& text, fmt::format_string<Args...> line, Args&&... args) {
  text += fmt::format(line, std::forward<Args>(args)...) + '\n';
}

/// "bus 0000:1B:00.0, NUMA node 0, 18 NVLinks, close to processors 0-55; "
std::string place_of_gpu(const Machine& m) {
  if (m.bus.empty()) return {};
  std::string text = "bus " + m.bus;
  if (m.numa_node >= 0) text += fmt::format(", NUMA node {}", m.numa_node);
  if (m.nvlinks > 0) text += fmt::format(", {} NVLinks", m.nvlinks);
  if (!m.near.empty()) text += fmt::format(", close to processors {}", m.near);
  return text + "; ";
}

/// " of 4800.0 (81%), H200's data sheet"
std::string compared(double rate, const Expected& expected) {
  if (expected.rate <= 0) return {};
  return fmt::format("  of {:.1f} ({:.0f}%), {}", expected.rate, 100 * rate / expected.rate,
                     expected.basis);
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
    add(text, "          {}runs on processors {}", place_of_gpu(m), m.processors);
  }
}

void print_rates(const Diagnosis& found, std::string& text) {
  if (found.rates.empty()) return;
  add(text,
      "rates (all ranks at once): minimum and maximum over ranks, and the minimum relative to the "
      "expected rate:");
  for (const Rate& r : found.rates) {
    const char* indent = r.name == rate_name::busiest_link ? "  " : "";
    add(text, "  {:<32} {:>9.1f} to {:>9.1f} {}{}", indent + r.name, r.least, r.most, r.unit,
        compared(r.least, r.expected));
  }
  if (found.rows_to_fill > 0)
    add(text, "  a GEMM of {} rows reaches 90% of the best rate", found.rows_to_fill);
}

/// A line per kind of connection.
void print_connections(const Diagnosis& found, std::string& text) {
  std::vector<std::string> kinds;
  for (const Pair& pair : found.pairs)
    if (std::find(kinds.begin(), kinds.end(), pair.connection) == kinds.end())
      kinds.push_back(pair.connection);
  for (const std::string& kind : kinds) {
    std::vector<Pair> all;
    std::copy_if(found.pairs.begin(), found.pairs.end(), std::back_inserter(all),
                 [&](const Pair& pair) { return pair.connection == kind; });
    const auto [slow, fast] = std::minmax_element(
        all.begin(), all.end(), [](const Pair& a, const Pair& b) { return a.rate < b.rate; });
    add(text, "  {}: {} pair{}, {:.1f} (ranks {} and {}) to {:.1f} GB/s{}", kind, all.size(),
        all.size() > 1 ? "s" : "", slow->rate, slow->first, slow->second, fast->rate,
        compared(slow->rate, slow->expected));
  }
}

void print_pairs(const Diagnosis& found, std::string& text) {
  if (found.pairs.empty()) return;
  constexpr std::size_t widest = 16;
  add(text, "between pairs of ranks, GB/s per direction, both directions at once:");
  print_connections(found, text);
  const std::size_t ranks = found.machines.size();
  if (ranks > widest || ranks == 2) return;
  std::vector<std::vector<std::string>> cells(ranks, std::vector<std::string>(ranks, "-"));
  for (const Pair& pair : found.pairs) {
    const auto first = static_cast<std::size_t>(pair.first),
               second = static_cast<std::size_t>(pair.second);
    cells[first][second] = cells[second][first] = fmt::format("{:.1f}", pair.rate);
  }
  std::string head = "  rank";
  for (std::size_t rank = 0; rank < ranks; ++rank) head += fmt::format("{:>8}", rank);
  add(text, "{}", head);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::string line = fmt::format("  {:>4}", rank);
    for (const std::string& cell : cells[rank]) line += fmt::format("{:>8}", cell);
    add(text, "{}", line);
  }
}

/// As a deck takes them.
void print_deck(const Diagnosis& found, std::string& text) {
  if (found.deck.empty()) return;
  add(text, "deck settings for this machine:");
  for (std::size_t at = 0; at < found.deck.size();) {
    const std::string& group = found.deck[at].group;
    add(text, "  &{}", group);
    for (; at < found.deck.size() && found.deck[at].group == group; ++at) {
      const DeckLine& line = found.deck[at];
      add(text, "    {:<24} ! {}", line.name + " = " + line.value, line.reason);
    }
    add(text, "  /");
  }
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
  add(text, "  {} cases; closest to its tolerance: {}, {}: {:.1e} of {:.1e}", found.checks.size(),
      worst->operation, worst->shape, worst->error, worst->bar);
  for (std::size_t rank = 0; rank < found.failed.size(); ++rank)
    if (found.failed[rank] > 0) add(text, "  rank {}: {} FAIL", rank, found.failed[rank]);
  add(text, "{}", found.passed() ? "all operations pass on all ranks" : "some operations FAIL");
}

void add(const Expected& expected, nlohmann::ordered_json& entry) {
  if (expected.rate <= 0) return;
  entry["expected"] = expected.rate;
  entry["expected_of"] = expected.basis;
}

}  // namespace

std::string to_json(const Diagnosis& found) {
  nlohmann::ordered_json all;
  for (const auto& [what, version] : found.versions) all["versions"][what] = version;
  for (const Machine& m : found.machines)
    all["ranks"].push_back({{"host", m.host},
                            {"device", m.device},
                            {"free_gib", m.free_gib},
                            {"total_gib", m.total_gib},
                            {"processors", m.processors},
                            {"threads", m.threads},
                            {"bus", m.bus},
                            {"numa_node", m.numa_node},
                            {"close_processors", m.near},
                            {"nvlinks", m.nvlinks}});
  for (const Rate& r : found.rates) {
    all["rates"].push_back({{"name", r.name},
                            {"unit", r.unit},
                            {"least", r.least},
                            {"most", r.most},
                            {"slowest_rank", r.slowest}});
    add(r.expected, all["rates"].back());
  }
  for (const Pair& p : found.pairs) {
    all["pairs"].push_back({{"ranks", {p.first, p.second}},
                            {"connection", p.connection},
                            {"unit", "GB/s"},
                            {"rate", p.rate}});
    add(p.expected, all["pairs"].back());
  }
  if (found.rows_to_fill > 0) all["rows_to_fill"] = found.rows_to_fill;
  all["warnings"] = found.warnings;
  for (const DeckLine& line : found.deck)
    all["deck"].push_back({{"group", line.group},
                           {"name", line.name},
                           {"value", line.value},
                           {"reason", line.reason}});
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
  print_pairs(found, text);
  print_checks(found, verbose, text);
  for (const std::string& warning : found.warnings) add(text, "warning: {}", warning);
  print_deck(found, text);
  text.pop_back();
  return text;
}

}  // namespace tern::checks
