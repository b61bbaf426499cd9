#include "checks/diagnose.hpp"

#include <unistd.h>

#include <cstring>

#include "base/version.hpp"
#include "checks/detail/rates.hpp"
#include "checks/operations.hpp"
#include "comm/waits.hpp"

namespace tern::checks {
namespace {

constexpr int wait_minutes = 10;  // limit of a rank's wait for another

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

#if defined(KOKKOS_ENABLE_CUDA)
using Checked = bf16;
constexpr const char* what_is_checked = "accelerated in bf16 against portable in double";
#else
using Checked = float;
constexpr const char* what_is_checked = "portable in float against double";
#endif

/// Trivially copyable, so that ranks can send it.
struct Machine {
  char host[64], device[96];
  double free_gib, total_gib;
};

Machine describe_machine() {
  Machine machine{};
  gethostname(machine.host, sizeof machine.host - 1);
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
  std::strncpy(machine.device, text.c_str(), sizeof machine.device - 1);
  const DeviceCapacity capacity = device_capacity();
  machine.free_gib = static_cast<double>(capacity.free_bytes) / gib;
  machine.total_gib = static_cast<double>(capacity.total_bytes) / gib;
  return machine;
}

void print_machine(const comm::Session& session, comm::Group& group, Log& log) {
  log.line("tern {} ({}), Kokkos {}.{}.{}", version(), commit(), KOKKOS_VERSION / 10000,
           KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100);
#if defined(KOKKOS_ENABLE_CUDA)
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  log.line("CUDA runtime {}.{}, driver for {}.{}", runtime / 1000, runtime % 1000 / 10,
           driver / 1000, driver % 1000 / 10);
#endif
  log.line("{} rank(s), {} on this host", session.size(), session.local_size());
  for (int rank = 0; rank < group.size(); ++rank) {
    Machine machine = describe_machine();
    group.broadcast(&machine, sizeof machine, rank);
    log.line("  rank {}: {}, {}, {:.1f} of {:.1f} GiB free", rank, machine.host, machine.device,
             machine.free_gib, machine.total_gib);
  }
}

/// Prints the smallest and largest rate over the ranks. Collective.
void print_rate(const char* name, double rate, const char* unit, double scale, comm::Group& group,
                Log& log) {
  double least = rate, most = rate;
  group.all_reduce(&least, 1, comm::Sum::min);
  group.all_reduce(&most, 1, comm::Sum::max);
  log.line("  {:<28} {:>9.1f} to {:>9.1f} {}", name, least / scale, most / scale, unit);
}

void print_rates(const ops::Context& context, comm::Group& group, Log& log) {
  log.line("rates, minimum and maximum over ranks (all ranks at once):");
  print_rate("copy (read + write)", detail::copy_rate(context), "GB/s", 1e9, group, log);
#if defined(KOKKOS_ENABLE_CUDA)
  print_rate("matrix product, bf16", detail::matrix_rate<bf16>(context), "TFLOP/s", 1e12, group,
             log);
  print_rate("matrix product, float", detail::matrix_rate<float>(context), "TFLOP/s", 1e12, group,
             log);
#else
  print_rate("matrix product, float", detail::matrix_rate<float>(context), "GFLOP/s", 1e9, group,
             log);
#endif
  print_rate("matrix product, double", detail::matrix_rate<double>(context), "GFLOP/s", 1e9, group,
             log);
  if (group.size() > 1) {
    const double rate = detail::all_reduce_rate(context, group), ranks = group.size();
    print_rate("all-reduce, float", rate, "GB/s", 1e9, group, log);
    print_rate("  on the busiest link", rate * 2 * (ranks - 1) / ranks, "GB/s", 1e9, group, log);
  }
}

/// Returns whether all checks pass on this rank.
bool print_checks(const ops::Context& context, const DiagnoseOptions& options, Log& log) {
  log.line("operations, {}; error = ||out - ref|| / ||ref||:", what_is_checked);
  log.line("  {:<30} {:<28} {:>9} {:>9} {:>9}  {}", "operation", "shape", "error", "portable",
           "bar", "verdict");
  int failed = 0;
  for (const checks::CheckResult& r : checks::check_operations<Checked>(context, options.seed)) {
    const char* verdict = r.passed()    ? "pass"
                          : !r.complete ? "FAIL: not all written"
                          : !r.repeats  ? "FAIL: does not repeat"
                                        : "FAIL: error";
    failed += !r.passed();
    log.line("  {:<30} {:<28} {:>9.1e} {:>9.1e} {:>9.1e}  {}", r.operation, r.shape, r.error,
             r.reference, r.bar, verdict);
  }
  return failed == 0;
}

}  // namespace

int diagnose(const DiagnoseOptions& options, const comm::Session& session, comm::Group& group,
             Log& log) {
  comm::limit_waits(wait_minutes);
  print_machine(session, group, log);
  Arena measuring;
  ops::make_context(measuring, true, "auto");
  Arena arena(measuring.bytes());
  const ops::Context context = ops::make_context(arena, true, "auto");
  if (options.rates) print_rates(context, group, log);
  bool failed = false;
  if (options.checks) {
    failed = group.any(!print_checks(context, options, log));
    log.line("{}",
             failed ? "some operations FAIL on some rank" : "all operations pass on all ranks");
  }
  return failed ? 1 : 0;
}

}  // namespace tern::checks
