#include "report/rank_usage.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <utility>

#include "memory/views.hpp"
#include "report/detail/stability.hpp"

namespace tern::report {
namespace {

/// A rank's numbers as they travel.
constexpr std::size_t fields = 12;
using Packed = std::array<double, fields>;

// An absent reading travels as a negative number, which no reading is (temperatures of GPUs at work
// are above zero).
constexpr double absent = -1;
std::optional<double> present(double value) {
  return value >= 0 ? std::optional(value) : std::nullopt;
}

Packed packed(const RankInterval& r) {
  const profile::DeviceUsage& u = r.usage;
  return {r.wall,
          r.waited,
          r.compute,
          static_cast<double>(r.stage),
          r.cores,
          static_cast<double>(u.memory_bytes),
          static_cast<double>(u.peak_bytes),
          static_cast<double>(u.process.resident_bytes),
          static_cast<double>(u.process.peak_bytes),
          u.gpu.utilization.value_or(absent),
          u.gpu.watts.value_or(absent),
          u.gpu.celsius.value_or(absent)};
}

RankInterval unpacked(const double* p) {
  RankInterval r;
  r.wall = p[0], r.waited = p[1], r.compute = p[2];
  r.stage = static_cast<int>(p[3]);
  r.cores = p[4];
  profile::DeviceUsage& u = r.usage;
  u.memory_bytes = static_cast<std::size_t>(p[5]);
  u.peak_bytes = static_cast<std::size_t>(p[6]);
  u.process.resident_bytes = static_cast<std::size_t>(p[7]);
  u.process.peak_bytes = static_cast<std::size_t>(p[8]);
  u.gpu.utilization = present(p[9]);
  u.gpu.watts = present(p[10]);
  u.gpu.celsius = present(p[11]);
  return r;
}

}  // namespace

// Each rank adds its numbers to a vector that is zero elsewhere.
RankUsage::RankUsage(const RankInterval& mine, comm::Group& group) {
  std::vector<double> all(fields * static_cast<std::size_t>(group.size()), 0.0);
  const Packed own = packed(mine);
  std::copy(own.begin(), own.end(),
            all.begin() + static_cast<std::ptrdiff_t>(fields) * group.rank());
  group.all_reduce(all.data(), all.size(), comm::Sum::sum);
  for (std::size_t at = 0; at < all.size(); at += fields) ranks_.push_back(unpacked(&all[at]));
}

template <class Read>
std::optional<RankUsage::Extremes> RankUsage::over_ranks(const Read& read) const {
  Extremes e{std::numeric_limits<double>::infinity(), 0, -1, -1};
  int count = 0;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::optional<double> value = read(ranks_[rank]);
    if (!value) continue;
    ++count;
    e.mean += *value;
    e.least = std::min(e.least, *value);
    if (*value > e.most) e.most = *value, e.rank = static_cast<int>(rank);
  }
  if (count == 0) return std::nullopt;
  e.mean /= count;
  return e;
}

RankUsage::Extremes RankUsage::of_all(double RankInterval::*field) const {
  return *over_ranks([&](const RankInterval& r) { return std::optional(r.*field); });
}

std::optional<SlowestRank> RankUsage::slowest() const {
  std::optional<SlowestRank> found;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankInterval& mine = ranks_[rank];
    if (mine.compute <= 0) return std::nullopt;
    std::vector<double> others;
    for (std::size_t other = 0; other < ranks_.size(); ++other)
      if (other != rank && ranks_[other].stage == mine.stage)
        others.push_back(ranks_[other].compute);
    if (others.empty()) continue;
    const double excess = mine.compute / detail::median(std::move(others)) - 1;
    if (!found || excess > found->excess) found = {static_cast<int>(rank), mine.compute, excess};
  }
  return found;
}

Values RankUsage::metrics() const {
  using Usage = std::function<std::optional<double>(const profile::DeviceUsage&)>;
  Values values;
  const auto of = [&](const Usage& read) {
    return over_ranks([&](const RankInterval& r) { return read(r.usage); });
  };
  const auto largest = [&](const char* name, const Usage& read) {
    values.emplace_back(name, of(read)->most);
  };
  const auto number = [](std::size_t bytes) { return static_cast<double>(bytes); };
  if constexpr (!on_host) {  // on the host they are the process's
    largest("system/gpu_memory_allocated",
            [&](const profile::DeviceUsage& u) { return number(u.memory_bytes); });
    largest("system/gpu_memory_peak",
            [&](const profile::DeviceUsage& u) { return number(u.peak_bytes); });
  }
  largest("system/process_memory",
          [&](const profile::DeviceUsage& u) { return number(u.process.resident_bytes); });
  largest("system/process_memory_peak",
          [&](const profile::DeviceUsage& u) { return number(u.process.peak_bytes); });
  values.emplace_back("system/process_cores", of_all(&RankInterval::cores).mean);
  if (const auto e = of([](const profile::DeviceUsage& u) { return u.gpu.utilization; })) {
    values.emplace_back("system/gpu_utilization", e->mean);
    values.emplace_back("system/gpu_utilization_min", e->least);
  }
  if (const auto e = of([](const profile::DeviceUsage& u) { return u.gpu.watts; })) {
    values.emplace_back("system/gpu_power", e->mean);
    values.emplace_back("system/gpu_power_max", e->most);
  }
  if (const auto e = of([](const profile::DeviceUsage& u) { return u.gpu.celsius; })) {
    values.emplace_back("system/gpu_temperature", e->mean);
    values.emplace_back("system/gpu_temperature_max", e->most);
    values.emplace_back("system/gpu_hottest_rank", e->rank);
  }
  if (const auto slow = slowest()) {
    values.emplace_back("system/slowest_rank", slow->rank);
    values.emplace_back("system/slowest_rank_excess", slow->excess);
  }
  return values;
}

}  // namespace tern::report
