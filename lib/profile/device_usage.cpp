#include "profile/device_usage.hpp"

#include <algorithm>
#include <utility>

#include "comm/gpu.hpp"
#include "memory/arena.hpp"

namespace tern::profile {

DeviceMeter::DeviceMeter(std::shared_ptr<const device::Nvml> nvml, std::string gpu)
    : nvml_(std::move(nvml)), gpu_(std::move(gpu)) {
  if (nvml_) start_joules_ = nvml_->read(gpu_).joules;
}

DeviceMeter::DeviceMeter(int local_rank)
    : DeviceMeter(on_host ? nullptr : device::Nvml::open(), comm::gpu::bus_address()) {
  if (on_host && local_rank == 0) rapl_.emplace();
}

std::optional<double> DeviceMeter::joules(const device::Readings& gpu) {
  if (rapl_ && rapl_->available()) return rapl_->joules();
  if (!gpu.joules || !start_joules_) return std::nullopt;
  return *gpu.joules - *start_joules_;
}

DeviceUsage DeviceMeter::read() {
  DeviceUsage usage;
  usage.process = device::process_usage();
  if (nvml_) usage.gpu = nvml_->read(gpu_);
  if constexpr (on_host) {
    usage.memory_bytes = usage.process.resident_bytes;
    peak_bytes_ = usage.process.peak_bytes;
  } else {
    const DeviceCapacity capacity = device_capacity();
    usage.memory_bytes = capacity.total_bytes - capacity.free_bytes;
  }
  peak_bytes_ = std::max(peak_bytes_, usage.memory_bytes);
  usage.peak_bytes = peak_bytes_;
  usage.energy_joules = joules(usage.gpu);
  return usage;
}

}  // namespace tern::profile
