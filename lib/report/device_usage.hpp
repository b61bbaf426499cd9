/// Memory and energy of this rank's device during a run.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>

#include "report/detail/energy.hpp"

namespace tern::report {

struct DeviceUsage {
  /// In use on the device by all processes (CUDA builds); else resident memory of this process.
  std::size_t memory_bytes = 0;
  /// Joules since construction of the meter, from this rank's GPU (NVML) or the host's processors
  /// (RAPL). Absent if neither reports it.
  std::optional<double> energy_joules;
};

/// RAPL counts the whole host, so only the rank with `local_rank` 0 reads it, and energies of all
/// ranks add up. Its counters wrap after about an hour at full load: call read() more often.
class DeviceMeter {
 public:
  explicit DeviceMeter(int local_rank);
  ~DeviceMeter();
  DeviceMeter(const DeviceMeter&) = delete;
  DeviceMeter& operator=(const DeviceMeter&) = delete;

  /// Local; takes microseconds.
  DeviceUsage read();

 private:
  std::unique_ptr<detail::EnergyCounter> counter_;
  double start_joules_ = 0;
};

}  // namespace tern::report
