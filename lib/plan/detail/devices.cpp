#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "comm/gpu.hpp"
#include "device/this_device.hpp"
#include "plan/detail/host_rates.hpp"
#include "plan/devices.hpp"

namespace tern::plan {

PlannedDevice::PlannedDevice(const std::string& name, const Nodes& nodes) : nodes_(nodes) {
  std::string upper = name, names;
  std::transform(name.begin(), name.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name.empty()) return;
  for (const device::DataSheet& one : device::data_sheets()) {
    if (upper == one.name) {
      elsewhere_ = &one;
      return;
    }
    if (names.find(one.name + std::string(",")) == std::string::npos)
      names += one.name + std::string(", ");
  }
  user_error("--device {}: that GPU's memory and rates are unknown; pass one of {}", name,
             names.substr(0, names.size() - 2));
}

const device::DataSheet* PlannedDevice::data_sheet() const {
  return elsewhere_ ? elsewhere_ : device::this_data_sheet();
}

void PlannedDevice::time_host(const deck::Deck& deck) {
  if (is_gpu()) return;
  const detail::HostRates found = detail::time_host(deck);
  const double tflops = found.flops / 1e12, gigabytes = found.bytes / 1e9;
  // Ranks of a host exchange through its memory.
  timed_ = std::make_shared<device::DataSheet>(
      device::DataSheet{"host", "", tflops, tflops, tflops, gigabytes / 1e3, 0, gigabytes, 0});
}

Nodes PlannedDevice::placed() const {
  Nodes nodes = nodes_;
  const device::DataSheet* known = data_sheet();
  if (nodes.gigabits == 0 && known) nodes.gigabits = known->gigabits_network;
  return nodes;
}

std::string PlannedDevice::name() const {
  if (const device::DataSheet* device = data_sheet()) return device->name;
  if (const std::string name = comm::gpu::name(); !name.empty()) return name;
  return fmt::format("{}, {} threads", Device::name(), Device().concurrency());
}

bool PlannedDevice::is_gpu() const {
  return elsewhere_ || !std::is_same_v<DeviceMemory, Kokkos::HostSpace>;
}

DeviceCapacity PlannedDevice::capacity() const {
  if (!elsewhere_) return device_capacity();
  constexpr double gib = 1024.0 * 1024.0 * 1024.0, taken = 1.1;  // measured on an H200 before a run
  return {static_cast<std::size_t>((elsewhere_->gib - taken) * gib),
          static_cast<std::size_t>(elsewhere_->gib * gib)};
}

}  // namespace tern::plan
