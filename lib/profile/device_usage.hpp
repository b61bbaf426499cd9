/// Use of this rank's device and process during a run.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>

#include "device/host.hpp"
#include "device/nvml.hpp"
#include "device/rapl.hpp"

namespace tern::profile {

struct DeviceUsage {
  /// In use on the device by all processes (builds for GPUs); else resident memory of this process.
  std::size_t memory_bytes = 0;
  /// The largest of all reads; on the host the process's largest ever.
  std::size_t peak_bytes = 0;
  device::ProcessUsage process;
  /// GPU as NVML reports it; empty on the host and without NVML.
  device::Readings gpu;
  /// Joules since construction of the meter, from this rank's GPU (NVML) or the host's processors
  /// (RAPL). Absent if neither reports it.
  std::optional<double> energy_joules;
};

/// RAPL counts the whole host, so only the rank with `local_rank` 0 reads it, and energies of all
/// ranks add up. Its counters wrap after about an hour at full load: call read() more often.
class DeviceMeter {
 public:
  explicit DeviceMeter(int local_rank);
  /// Meter of the GPU at a bus address (comm/gpu.hpp). `nvml` may be null.
  DeviceMeter(std::shared_ptr<const device::Nvml> nvml, std::string gpu);
  DeviceMeter(const DeviceMeter&) = delete;
  DeviceMeter& operator=(const DeviceMeter&) = delete;

  /// Local; takes microseconds to milliseconds, and waits for no work of the device.
  DeviceUsage read();

 private:
  std::optional<double> joules(const device::Readings& gpu);

  std::shared_ptr<const device::Nvml> nvml_;
  std::string gpu_;
  std::optional<device::Rapl> rapl_;
  std::optional<double> start_joules_;
  std::size_t peak_bytes_ = 0;
};

}  // namespace tern::profile
