#include "checks/diagnosis.hpp"

#include <algorithm>
#include <cmath>

#include "base/host.hpp"
#include "base/version.hpp"
#include "checks/detail/expected.hpp"
#include "checks/detail/rates.hpp"
#include "checks/diagnose.hpp"
#include "checks/recommendation.hpp"
#include "comm/gpu.hpp"
#include "comm/text.hpp"
#include "device/host.hpp"
#include "ops/core/operation.hpp"
#include "ops/linear/fp8.hpp"

namespace tern::checks {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

using Checked = std::conditional_t<ops::native_build, bf16, float>;
constexpr const char* what_is_checked = ops::native_build
                                            ? "accelerated in bf16 against portable in double"
                                            : "portable in float against double";

std::vector<std::pair<std::string, std::string>> versions() {
  std::vector<std::pair<std::string, std::string>> all{
      {"tern", std::string(version())},
      {"commit", std::string(commit())},
      {"Kokkos", fmt::format("{}.{}.{}", KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100,
                             KOKKOS_VERSION % 100)}};
  for (auto& of_gpu : comm::gpu::versions()) all.push_back(std::move(of_gpu));
  return all;
}

std::string device_text() {
  if constexpr (!on_host) return comm::gpu::description();
  return fmt::format("{} threads, {}, {}", Device().concurrency(), Device::name(),
                     device::processor().name);
}

Machine describe(const device::Nvml* nvml) {
  Machine here;
  here.host = host_name();
  here.device = device_text();
  const DeviceCapacity capacity = device_capacity();
  here.free_gib = static_cast<double>(capacity.free_bytes) / gib;
  here.total_gib = static_cast<double>(capacity.total_bytes) / gib;
  here.processors = device::allowed_processors();
  if constexpr (on_host) here.threads = Device().concurrency();
  here.bus = comm::gpu::bus_address();
  const device::Locality locality = device::locality(here.bus);
  here.near = locality.processors;
  here.numa_node = locality.numa_node;
  if (nvml) here.nvlinks = nvml->nvlinks(here.bus);
  return here;
}

std::vector<Machine> machines(const device::Nvml* nvml, comm::Group& group) {
  const Machine mine = describe(nvml);
  std::vector<Machine> all;
  for (int rank = 0; rank < group.size(); ++rank) {
    Machine one = mine;
    for (std::string* text : {&one.host, &one.device, &one.processors, &one.bus, &one.near})
      *text = comm::broadcast_text(*text, group, rank);
    group.broadcast(&one.free_gib, sizeof one.free_gib, rank);
    group.broadcast(&one.total_gib, sizeof one.total_gib, rank);
    group.broadcast(&one.numa_node, sizeof one.numa_node, rank);
    group.broadcast(&one.nvlinks, sizeof one.nvlinks, rank);
    group.broadcast(&one.threads, sizeof one.threads, rank);
    all.push_back(std::move(one));
  }
  return all;
}

/// How this rank reaches `other`.
std::string connection(const device::Nvml* nvml, const Machine& mine, const Machine& other) {
  if (mine.host != other.host) return "network";
  if (nvml && !mine.bus.empty())
    if (const auto found = nvml->connection(mine.bus, other.bus))
      return device::connection_name(*found);
  return "same host";
}

class Measurement {
 public:
  Measurement(const ops::Context& context, comm::Group& group, int ranks_of_host)
      : context_(context), group_(group), expected_(ranks_of_host) {}

  std::vector<Rate> rates() {
    add("copy (read + write)", detail::copy_rate(context_), "GB/s", 1e9, expected_.copy());
    if constexpr (!on_host) {
      const detail::HostCopies copies = detail::host_copy_rates(context_);
      add("copy, host to device", copies.to_device, "GB/s", 1e9, expected_.host_copy());
      add("copy, device to host", copies.to_host, "GB/s", 1e9, expected_.host_copy());
    }
    add_products();
    for (const std::size_t size : {64, 128}) add_attention(size);
    return std::move(rates_);
  }

  /// None beyond most_ranks_in_pairs.
  std::vector<Pair> pairs(const std::vector<Machine>& all, const device::Nvml* nvml) {
    std::vector<Pair> pairs;
    if (group_.size() > most_ranks_in_pairs) return pairs;
    const std::vector<double> measured = detail::pair_rates(context_, group_);
    for (int first = 0; first < group_.size(); ++first)
      for (int second = first + 1; second < group_.size(); ++second) {
        std::string name = connection(nvml, all[static_cast<std::size_t>(group_.rank())],
                                      all[static_cast<std::size_t>(second)]);
        name = comm::broadcast_text(std::move(name), group_, first);
        pairs.push_back(
            {first, second, name, measured[pairs.size()] / 1e9, expected_.connection(name)});
      }
    return pairs;
  }

  /// `pairs`: the slowest connection of a ring bounds the rate.
  std::vector<Rate> all_reduce(const std::vector<Pair>& pairs) {
    const double rate = detail::all_reduce_rate(context_, group_), ranks = group_.size();
    Expected link = pairs.empty() ? Expected{} : pairs.front().expected;
    for (const Pair& pair : pairs)
      if (pair.expected.rate < link.rate) link = pair.expected;
    add("all-reduce, float", rate, "GB/s", 1e9, {});
    add(rate_name::busiest_link, rate * 2 * (ranks - 1) / ranks, "GB/s", 1e9, link);
    return std::move(rates_);
  }

 private:
  void add_products() {
    const char* unit = on_host ? "GFLOP/s" : "TFLOP/s";
    constexpr double scale = on_host ? 1e9 : 1e12;
    if constexpr (ops::native_build) {
      if (ops::fp8_available(context_))
        add(rate_name::fp8, detail::fp8_rate(context_), unit, scale, expected_.products("fp8"));
      ops::Context tf32 = context_;
      tf32.tf32 = true;
      add(rate_name::tf32, detail::matrix_rate<float>(tf32), unit, scale,
          expected_.products("tf32"));
    }
    add(rate_name::bf16, detail::matrix_rate<bf16>(context_), unit, scale,
        expected_.products("bf16"));
    add(rate_name::fp16, detail::matrix_rate<fp16>(context_), unit, scale,
        expected_.products("fp16"));
    add(rate_name::fp32, detail::matrix_rate<float>(context_), unit, scale,
        expected_.products("fp32"));
    add("matrix product, double", detail::matrix_rate<double>(context_), unit, scale,
        expected_.products("double"));
  }

  void add_attention(std::size_t head_size) {
    const bool host = on_host;
    const detail::AttentionRates found = detail::attention_rates(context_, head_size);
    const Expected peak = expected_.products(host ? "fp32" : "bf16");
    const auto name = [&](const char* pass) {
      return fmt::format("attention {}, heads of {}", pass, head_size);
    };
    add(name("forward"), found.forward, host ? "GFLOP/s" : "TFLOP/s", host ? 1e9 : 1e12, peak);
    add(name("backward"), found.backward, host ? "GFLOP/s" : "TFLOP/s", host ? 1e9 : 1e12, peak);
  }

  void add(std::string name, double rate, const char* unit, double scale, Expected expected) {
    std::vector<double> all(static_cast<std::size_t>(group_.size()), 0.0);
    all[static_cast<std::size_t>(group_.rank())] = rate / scale;
    group_.all_reduce(all.data(), all.size(), comm::Sum::sum);
    const auto [least, most] = std::minmax_element(all.begin(), all.end());
    rates_.push_back({std::move(name), unit, *least, *most, static_cast<int>(least - all.begin()),
                      std::move(expected)});
  }

  const ops::Context& context_;
  comm::Group& group_;
  detail::Expectations expected_;
  std::vector<Rate> rates_;
};

void measure(const ops::Context& context, comm::Group& group, const device::Nvml* nvml,
             Diagnosis& found) {
  Measurement measurement(context, group, found.ranks_of_host);
  found.rates = measurement.rates();
  auto rows = static_cast<std::int64_t>(detail::rows_to_fill(context));
  group.all_reduce(&rows, 1, comm::Sum::max);
  found.rows_to_fill = static_cast<std::size_t>(rows);
  if (group.size() == 1) return;
  found.pairs = measurement.pairs(found.machines, nvml);
  for (Rate& rate : measurement.all_reduce(found.pairs)) found.rates.push_back(std::move(rate));
}

void check(const ops::Context& context, comm::Group& group, std::uint64_t seed, Diagnosis& found) {
  found.checked = what_is_checked;
  found.checks = check_operations<Checked>(context, seed);
  const auto fails = [](const CheckResult& r) { return !r.passed(); };
  for (int rank = 0; rank < group.size(); ++rank) {
    int count = static_cast<int>(std::count_if(found.checks.begin(), found.checks.end(), fails));
    group.broadcast(&count, sizeof count, rank);
    found.failed.push_back(count);
  }
}

}  // namespace

bool Diagnosis::passed() const {
  return std::all_of(failed.begin(), failed.end(), [](int count) { return count == 0; });
}

const Rate* Diagnosis::rate(const std::string& name) const {
  const auto found =
      std::find_if(rates.begin(), rates.end(), [&](const Rate& r) { return r.name == name; });
  return found == rates.end() ? nullptr : &*found;
}

Diagnosis examine(const DiagnoseOptions& options, const comm::Session& session,
                  comm::Group& group) {
  Diagnosis found;
  found.versions = versions();
  found.ranks_of_host = session.local_size();
  const auto nvml = device::Nvml::open();
  found.machines = machines(nvml.get(), group);
  Arena measuring;
  ops::make_context(measuring, true, "auto");
  Arena arena(measuring.bytes());
  const ops::Context context = ops::make_context(arena, true, "auto");
  if (options.rates) measure(context, group, nvml.get(), found);
  if (options.checks) check(context, group, options.seed, found);
  found.warnings = warnings(found);
  found.deck = recommend(found);
  return found;
}

}  // namespace tern::checks
