#include "report/device_usage.hpp"

#include <unistd.h>

#include <fstream>

#include "memory/arena.hpp"
#include "report/detail/energy.hpp"

namespace tern::report {
namespace {

std::size_t memory_in_use() {
#if defined(KOKKOS_ENABLE_CUDA)
  const DeviceCapacity capacity = device_capacity();
  return capacity.total_bytes - capacity.free_bytes;
#else
  std::size_t all_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
  return resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
#endif
}

}  // namespace

DeviceMeter::DeviceMeter(int local_rank) {
#if defined(KOKKOS_ENABLE_CUDA)
  counter_ = detail::nvml_energy();
#else
  if (local_rank == 0) counter_ = detail::rapl_energy("/sys/class/powercap");
#endif
  (void)local_rank;
  if (counter_) start_joules_ = counter_->joules();
}

DeviceMeter::~DeviceMeter() = default;

DeviceUsage DeviceMeter::read() {
  DeviceUsage usage{memory_in_use(), {}};
  if (counter_) usage.energy_joules = counter_->joules() - start_joules_;
  return usage;
}

}  // namespace tern::report
