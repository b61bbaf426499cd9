#include "checks/recommendation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tern::checks {
namespace {

constexpr double worthwhile = 1.2;    // gain from which a lower precision is recommended
constexpr double uneven = 0.85;       // slowest to fastest rank
constexpr double far_below = 0.4;     // of what the device should give
constexpr double slow_exchange = 20;  // GB/s: a GPU computes while gradients wait

bool on_gpu(const Diagnosis& found) { return !found.machines.front().bus.empty(); }

bool fails(const Diagnosis& found, const char* operation) {
  return std::any_of(found.checks.begin(), found.checks.end(), [&](const CheckResult& r) {
    return !r.passed() && r.operation.find(operation) != std::string::npos;
  });
}

double least(const Diagnosis& found, const char* name) {
  const Rate* rate = found.rate(name);
  return rate ? rate->least : 0;
}

std::string unit(const Diagnosis& found) { return found.rate(rate_name::fp32)->unit; }

DeckLine precision(const Diagnosis& found) {
  const double fp8 = fails(found, "fp8") ? 0 : least(found, rate_name::fp8);
  const double bf16 = least(found, rate_name::bf16), fp32 = least(found, rate_name::fp32);
  if (fp8 > worthwhile * bf16)
    return {"precision", "compute", "'fp8'",
            fmt::format(
                "GEMMs reach {:.0f} {}, {:.1f} times bf16; use 'bf16' where fp8 rounding matters",
                fp8, unit(found), fp8 / bf16)};
  if (bf16 > worthwhile * fp32)
    return {"precision", "compute", "'bf16'",
            fmt::format("GEMMs reach {:.0f} {}, {:.1f} times fp32{}", bf16, unit(found),
                        bf16 / fp32, fails(found, "fp8") ? "; fp8 fails its checks" : "")};
  return {"precision", "compute", "'fp32'",
          fmt::format("GEMMs reach {:.1f} {}, in bf16 {:.1f}", fp32, unit(found), bf16)};
}

DeckLine attention(const Diagnosis& found) {
  if (fails(found, "attention") && on_gpu(found))
    return {"model", "attention", "'portable'", "the native kernels fail their checks here"};
  return {"model", "attention", "'auto'",
          fmt::format("heads of 64: {:.1f} {} forward, {:.1f} backward",
                      least(found, rate_name::attention_forward), unit(found),
                      least(found, rate_name::attention_backward))};
}

/// Ranks per host; the least if hosts differ.
std::size_t ranks_per_host(const Diagnosis& found) {
  std::size_t fewest = found.machines.size();
  for (const Machine& machine : found.machines)
    fewest = std::min(fewest, static_cast<std::size_t>(std::count_if(
                                  found.machines.begin(), found.machines.end(),
                                  [&](const Machine& m) { return m.host == machine.host; })));
  return fewest;
}

/// The slowest pair, of all or of one host.
const Pair* slowest(const Diagnosis& found, bool of_one_host) {
  const Pair* slow = nullptr;
  for (const Pair& pair : found.pairs) {
    const auto host = [&](int rank) { return found.machines[static_cast<std::size_t>(rank)].host; };
    if (of_one_host && host(pair.first) != host(pair.second)) continue;
    if (!slow || pair.rate < slow->rate) slow = &pair;
  }
  return slow;
}

void add_parallel(const Diagnosis& found, std::vector<DeckLine>& lines) {
  const std::size_t ranks = found.machines.size(), per_host = ranks_per_host(found);
  if (ranks == 1) {
    lines.push_back({"parallel", "shard", "'none'", "a single rank holds all states"});
    return;
  }
  lines.push_back({"parallel", "data", "0", fmt::format("all {} ranks", ranks)});
  if (const Pair* pair = slowest(found, true))
    lines.push_back({"parallel", "tensor", "1",
                     fmt::format("for models that do not fit on one device, up to {}, the ranks "
                                 "per host: {:.1f} GB/s between the slowest pair ({})",
                                 per_host, pair->rate, pair->connection)});
  const double exchange = least(found, rate_name::busiest_link);
  lines.push_back({"parallel", "shard", "'optimizer'",
                   fmt::format("optimizer states take 1/{} of the memory for the same traffic: "
                               "{:.1f} GB/s on the busiest link",
                               ranks, exchange)});
}

void add_batch(const Diagnosis& found, std::vector<DeckLine>& lines) {
  if (found.rows_to_fill == 0) return;
  const double exchange = least(found, rate_name::busiest_link);
  const bool waits = on_gpu(found) && found.machines.size() > 1 && exchange < slow_exchange;
  const std::string tokens = fmt::format("{} tokens or more per micro-batch fill {}",
                                         found.rows_to_fill, on_gpu(found) ? "a GPU" : "the cores");
  if (on_gpu(found)) {
    double free = found.machines.front().free_gib;
    for (const Machine& machine : found.machines) free = std::min(free, machine.free_gib);
    lines.push_back(
        {"batch", "per_rank", "0",
         fmt::format("the most that fits in {:.1f} GiB; {}{}", free, tokens,
                     waits ? "; a larger global hides the slow gradient exchange" : "")});
    return;
  }
  constexpr std::size_t context = 256;
  const std::size_t rows = std::max<std::size_t>(1, found.rows_to_fill / context);
  lines.push_back({"batch", "per_rank", fmt::format("{}", rows),
                   fmt::format("at a context of {}: {}", context, tokens)});
}

/// Processors of a list such as "0-3,8".
std::set<int> numbers(const std::string& list) {
  std::set<int> all;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string range = list.substr(at, comma - at);
    const std::size_t dash = range.find('-');
    const int first = std::atoi(range.c_str());
    const int last = dash == std::string::npos ? first : std::atoi(range.c_str() + dash + 1);
    for (int i = first; i <= last; ++i) all.insert(i);
    at = comma + 1;
  }
  return all;
}

bool away_from_gpu(const Machine& m) {
  if (m.near.empty() || m.processors.empty()) return false;
  const std::set<int> own = numbers(m.processors), near = numbers(m.near);
  return std::none_of(own.begin(), own.end(), [&](int cpu) { return near.contains(cpu); });
}

/// Threads of ranks on the host that may run on the same processors only.
void warn_of_shared_processors(const Diagnosis& found, std::vector<std::string>& all) {
  std::map<std::pair<std::string, std::string>, int> threads;
  for (const Machine& m : found.machines) threads[{m.host, m.processors}] += m.threads;
  for (const auto& [place, count] : threads) {
    const auto& [host, processors] = place;
    const std::size_t room = numbers(processors).size();
    if (room > 0 && static_cast<std::size_t>(count) > room)
      all.push_back(
          fmt::format("{} threads of ranks on {} share {} CPUs ({}); start fewer ranks, or lower "
                      "OMP_NUM_THREADS",
                      count, host, room, processors));
  }
}

/// The worst rate of each rank that is the slowest at something.
void warn_of_slow_ranks(const Diagnosis& found, std::vector<std::string>& all) {
  std::map<int, const Rate*> worst;
  for (const Rate& r : found.rates) {
    if (r.least >= uneven * r.most) continue;
    const Rate*& known = worst[r.slowest];
    if (!known || r.least / r.most < known->least / known->most) known = &r;
  }
  for (const auto& [rank, r] : worst)
    all.push_back(fmt::format("{}: rank {} on {} reaches {:.0f}% of the fastest rank's rate",
                              r->name, rank, found.machines[static_cast<std::size_t>(rank)].host,
                              100 * r->least / r->most));
}

}  // namespace

std::vector<DeckLine> recommend(const Diagnosis& found) {
  std::vector<DeckLine> lines;
  if (found.rates.empty()) return lines;
  lines.push_back(attention(found));
  lines.push_back(precision(found));
  add_batch(found, lines);
  add_parallel(found, lines);
  return lines;
}

std::vector<std::string> warnings(const Diagnosis& found) {
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < found.machines.size(); ++rank) {
    const Machine& m = found.machines[rank];
    if (away_from_gpu(m))
      all.push_back(
          fmt::format("rank {} runs on CPUs {}, but its GPU is close to {}; bind them together "
                      "(srun --cpu-bind, mpirun --map-by numa)",
                      rank, m.processors, m.near));
  }
  warn_of_shared_processors(found, all);
  for (const Rate& r : found.rates)
    if (r.expected.rate > 0 && r.most < far_below * r.expected.rate &&
        !r.name.starts_with("attention"))
      all.push_back(fmt::format(
          "{}: {:.0f}% of the expected rate; check other processes, clocks and power limits",
          r.name, 100 * r.most / r.expected.rate));
  warn_of_slow_ranks(found, all);
  return all;
}

}  // namespace tern::checks
