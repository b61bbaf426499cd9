#include "plan/detail/devices.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "plan/devices.hpp"

namespace tern::plan {
namespace detail {
namespace {

constexpr KnownDevice known[] = {{"H200", 989.4, 1978.9, 66.9, 4.8, 140.4},
                                 {"H100", 989.4, 1978.9, 66.9, 3.35, 79.6},
                                 {"A100-SXM4-80GB", 312.0, 312.0, 19.5, 2.039, 0},
                                 {"A100", 312.0, 312.0, 19.5, 1.555, 0}};
const KnownDevice* imagined = nullptr;

/// Of this rank.
const KnownDevice* this_device() {
#if defined(KOKKOS_ENABLE_CUDA)
  int device = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, device) != cudaSuccess)
    return nullptr;
  const std::string name = properties.name;
  for (const KnownDevice& one : known)
    if (name.find(one.name) != std::string::npos) return &one;
#endif
  return nullptr;
}

}  // namespace

double KnownDevice::tflops(const std::string& compute) const {
  return compute == "fp8" ? tflops_fp8 : compute == "fp32" ? tflops_fp32 : tflops_bf16;
}

const KnownDevice* planned_device() { return imagined ? imagined : this_device(); }

}  // namespace detail

void imagine_device(const std::string& name) {
  std::string upper = name, names;
  std::transform(name.begin(), name.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const detail::KnownDevice& one : detail::known) {
    if (one.gib == 0) continue;
    if (upper == one.name) {
      detail::imagined = &one;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  user_error("--device {}: the memory of that GPU is not known here; write one of {}", name, names);
}

bool planned_on_gpu() {
  return detail::imagined || !std::is_same_v<DeviceMemory, Kokkos::HostSpace>;
}

DeviceCapacity planned_capacity() {
  if (!detail::imagined) return device_capacity();
  constexpr double gib = 1024.0 * 1024.0 * 1024.0, taken = 1.1;  // seen on an H200 before a run
  return {static_cast<std::size_t>((detail::imagined->gib - taken) * gib),
          static_cast<std::size_t>(detail::imagined->gib * gib)};
}

}  // namespace tern::plan
