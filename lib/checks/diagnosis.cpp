#include "checks/diagnosis.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/version.hpp"
#include "checks/detail/rates.hpp"
#include "checks/diagnose.hpp"

namespace tern::checks {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

#if defined(KOKKOS_ENABLE_CUDA)
using Checked = bf16;
constexpr const char* what_is_checked = "accelerated in bf16 against portable in double";
#else
using Checked = float;
constexpr const char* what_is_checked = "portable in float against double";
#endif

std::vector<std::pair<std::string, std::string>> versions() {
  std::vector<std::pair<std::string, std::string>> all{
      {"tern", std::string(version())},
      {"commit", std::string(commit())},
      {"Kokkos", fmt::format("{}.{}.{}", KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100,
                             KOKKOS_VERSION % 100)}};
#if defined(KOKKOS_ENABLE_CUDA)
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  const auto text = [](int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); };
  all.emplace_back("CUDA runtime", text(runtime));
  all.emplace_back("CUDA of the driver", text(driver));
#endif
  return all;
}

/// Trivially copyable, so that ranks can send it.
struct Description {
  char host[64], device[96];
  double free_bytes, total_bytes;
};

Description describe() {
  Description here{};
  gethostname(here.host, sizeof here.host - 1);
#if defined(KOKKOS_ENABLE_CUDA)
  int device = 0;
  cudaDeviceProp properties;
  cudaGetDevice(&device);
  cudaGetDeviceProperties(&properties, device);
  const std::string text = fmt::format("GPU {} {} (compute capability {}.{}, {} multiprocessors)",
                                       device, properties.name, properties.major, properties.minor,
                                       properties.multiProcessorCount);
#else
  const std::string text = fmt::format("{} threads, {}", Device().concurrency(), Device::name());
#endif
  std::strncpy(here.device, text.c_str(), sizeof here.device - 1);
  const DeviceCapacity capacity = device_capacity();
  here.free_bytes = static_cast<double>(capacity.free_bytes);
  here.total_bytes = static_cast<double>(capacity.total_bytes);
  return here;
}

std::vector<Machine> machines(comm::Group& group) {
  std::vector<Machine> all;
  for (int rank = 0; rank < group.size(); ++rank) {
    Description d = describe();
    group.broadcast(&d, sizeof d, rank);
    all.push_back({d.host, d.device, d.free_bytes / gib, d.total_bytes / gib});
  }
  return all;
}

std::vector<Rate> measure(const ops::Context& context, comm::Group& group) {
  std::vector<Rate> all;
  const auto add = [&](const char* name, double rate, const char* unit, double scale) {
    double least = rate, most = rate;
    group.all_reduce(&least, 1, comm::Sum::min);
    group.all_reduce(&most, 1, comm::Sum::max);
    all.push_back({name, unit, least / scale, most / scale});
  };
  add("copy (read + write)", detail::copy_rate(context), "GB/s", 1e9);
#if defined(KOKKOS_ENABLE_CUDA)
  add("matrix product, bf16", detail::matrix_rate<bf16>(context), "TFLOP/s", 1e12);
  add("matrix product, float", detail::matrix_rate<float>(context), "TFLOP/s", 1e12);
#else
  add("matrix product, float", detail::matrix_rate<float>(context), "GFLOP/s", 1e9);
#endif
  add("matrix product, double", detail::matrix_rate<double>(context), "GFLOP/s", 1e9);
  if (group.size() > 1) {
    const double rate = detail::all_reduce_rate(context, group), ranks = group.size();
    add("all-reduce, float", rate, "GB/s", 1e9);
    add("  on the busiest link", rate * 2 * (ranks - 1) / ranks, "GB/s", 1e9);
  }
  return all;
}

}  // namespace

bool Diagnosis::passed() const {
  return std::all_of(failed.begin(), failed.end(), [](int count) { return count == 0; });
}

Diagnosis examine(const DiagnoseOptions& options, const comm::Session& session,
                  comm::Group& group) {
  Diagnosis found;
  found.versions = versions();
  found.ranks_of_host = session.local_size();
  found.machines = machines(group);
  Arena measuring;
  ops::make_context(measuring, true, "auto");
  Arena arena(measuring.bytes());
  const ops::Context context = ops::make_context(arena, true, "auto");
  if (options.rates) found.rates = measure(context, group);
  if (!options.checks) return found;
  found.checked = what_is_checked;
  found.checks = check_operations<Checked>(context, options.seed);
  const auto fails = [](const CheckResult& r) { return !r.passed(); };
  for (int rank = 0; rank < group.size(); ++rank) {
    int count = static_cast<int>(std::count_if(found.checks.begin(), found.checks.end(), fails));
    group.broadcast(&count, sizeof count, rank);
    found.failed.push_back(count);
  }
  return found;
}

}  // namespace tern::checks
