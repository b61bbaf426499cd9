/// Memory and energy of this rank's device while a run goes on.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>

#include "report/detail/energy.hpp"

namespace tern::report {

struct DeviceUsage {
  /// In use on the device, by anybody (CUDA builds); else the resident memory of this process.
  std::size_t memory_bytes = 0;
  /// Joules since the meter was made, by this rank's GPU (NVML), or by the processors of the host
  /// (RAPL). Absent where neither reports it.
  std::optional<double> energy_joules;
};

/// RAPL counts the whole host, so only the rank with `local_rank` 0 reads it, and the energies of
/// all ranks may be added up. Its counters wrap (after about an hour at full load): call read()
/// more often.
class DeviceMeter {
 public:
  explicit DeviceMeter(int local_rank);
  ~DeviceMeter();
  DeviceMeter(const DeviceMeter&) = delete;
  DeviceMeter& operator=(const DeviceMeter&) = delete;

  /// Local; some microseconds.
  DeviceUsage read();

 private:
  std::unique_ptr<detail::EnergyCounter> counter_;
  double start_joules_ = 0;
};

}  // namespace tern::report
