#include "plan/detail/devices.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "plan/devices.hpp"

namespace tern::plan {
namespace detail {
namespace {

// The driver's name tells the 40 GB A100 from the 80 GB one (2.04 TB/s).
constexpr KnownDevice known[] = {
    {"H200", "H200", 989.4, 1978.9, 66.9, 4.8, 140.4, 450, 400},
    {"H100", "H100", 989.4, 1978.9, 66.9, 3.35, 79.6, 450, 400},
    {"A100-40GB", "A100-SXM4-40GB", 312.0, 312.0, 19.5, 1.555, 39.4, 300, 200},
    {"A100-40GB", "A100-PCIE-40GB", 312.0, 312.0, 19.5, 1.555, 39.4, 300, 200},
    {"A100", "A100", 312.0, 312.0, 19.5, 2.039, 79.2, 300, 200}};

/// Driver's name of this rank's GPU; empty on the host.
std::string driver_name() {
#if defined(KOKKOS_ENABLE_CUDA)
  int device = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) == cudaSuccess &&
      cudaGetDeviceProperties(&properties, device) == cudaSuccess)
    return properties.name;
#endif
  return {};
}

/// Data sheet of this rank's GPU; null if unknown.
const KnownDevice* this_device() {
  const std::string name = driver_name();
  for (const KnownDevice& one : known)
    if (name.find(one.driver) != std::string::npos) return &one;
  return nullptr;
}

}  // namespace

double KnownDevice::tflops(const std::string& compute) const {
  if (compute == "tf32") return tflops_bf16 / 2;
  return compute == "fp8" ? tflops_fp8 : compute == "fp32" ? tflops_fp32 : tflops_bf16;
}

}  // namespace detail

PlannedDevice::PlannedDevice(const std::string& name, const Nodes& nodes) : nodes_(nodes) {
  std::string upper = name, names;
  std::transform(name.begin(), name.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name.empty()) return;
  for (const detail::KnownDevice& one : detail::known) {
    if (upper == one.name) {
      elsewhere_ = &one;
      return;
    }
    if (names.find(one.name + std::string(",")) == std::string::npos)
      names += one.name + std::string(", ");
  }
  user_error("--device {}: that GPU's memory and rates are not known here; write one of {}", name,
             names.substr(0, names.size() - 2));
}

const detail::KnownDevice* PlannedDevice::data_sheet() const {
  return elsewhere_ ? elsewhere_ : detail::this_device();
}

Nodes PlannedDevice::placed() const {
  Nodes nodes = nodes_;
  const detail::KnownDevice* known = data_sheet();
  if (nodes.gigabits == 0 && known) nodes.gigabits = known->gigabits_network;
  return nodes;
}

std::string PlannedDevice::name() const {
  if (const detail::KnownDevice* device = data_sheet()) return device->name;
  if (const std::string name = detail::driver_name(); !name.empty()) return name;
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
