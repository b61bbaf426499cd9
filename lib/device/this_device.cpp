#include "device/this_device.hpp"

#include <Kokkos_Core.hpp>

namespace tern::device {

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

std::string bus_address() {
#if defined(KOKKOS_ENABLE_CUDA)
  int device = 0;
  char address[32] = {};
  if (cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetPCIBusId(address, sizeof address, device) == cudaSuccess)
    return address;
#endif
  return {};
}

const DataSheet* this_data_sheet() { return data_sheet_of(driver_name()); }

}  // namespace tern::device
