#include "plan/detail/devices.hpp"

#include <Kokkos_Core.hpp>

namespace tern::plan::detail {

double KnownDevice::tflops(const std::string& compute) const {
  return compute == "fp8" ? tflops_fp8 : compute == "fp32" ? tflops_fp32 : tflops_bf16;
}

#if defined(KOKKOS_ENABLE_CUDA)
const KnownDevice* this_device() {
  static constexpr KnownDevice known[] = {{"H200", 989.4, 1978.9, 66.9, 4.8},
                                          {"H100", 989.4, 1978.9, 66.9, 3.35},
                                          {"A100-SXM4-80GB", 312.0, 312.0, 19.5, 2.039},
                                          {"A100", 312.0, 312.0, 19.5, 1.555}};
  int device = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, device) != cudaSuccess)
    return nullptr;
  const std::string name = properties.name;
  for (const KnownDevice& one : known)
    if (name.find(one.name) != std::string::npos) return &one;
  return nullptr;
}
#else
const KnownDevice* this_device() { return nullptr; }
#endif

}  // namespace tern::plan::detail
