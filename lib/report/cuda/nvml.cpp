// Energy of the current GPU. NVML comes with the driver, not the toolkit: it is opened at run time,
// and the functions used are declared here as in nvml.h.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include "report/detail/energy.hpp"

namespace tern::report {
namespace {

using NvmlDevice = struct nvmlDevice_st*;
constexpr int nvml_success = 0;

class Nvml : public detail::EnergyCounter {
 public:
  // False if library, device or counter is missing.
  bool open() {
    library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library_) return false;
    const auto init = function<int (*)()>("nvmlInit_v2");
    const auto by_bus =
        function<int (*)(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
    energy_ = function<EnergyFunction>("nvmlDeviceGetTotalEnergyConsumption");
    if (!init || !by_bus || !energy_ || init() != nvml_success) return false;
    shutdown_ = function<int (*)()>("nvmlShutdown");
    // By PCI bus id: CUDA_VISIBLE_DEVICES renumbers CUDA's devices, not NVML's.
    int device = 0;
    char bus[32] = {};
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetPCIBusId(bus, sizeof(bus), device) == cudaSuccess &&
           by_bus(bus, &device_) == nvml_success && read();
  }

  ~Nvml() override {
    if (shutdown_) shutdown_();
    if (library_) ::dlclose(library_);
  }

  double joules() override {
    read();
    return 1e-3 * double(millijoules_);
  }

 private:
  using EnergyFunction = int (*)(NvmlDevice, unsigned long long*);

  template <class Function>
  Function function(const char* name) {
    return reinterpret_cast<Function>(::dlsym(library_, name));
  }
  bool read() { return energy_(device_, &millijoules_) == nvml_success; }

  void* library_ = nullptr;
  EnergyFunction energy_ = nullptr;
  int (*shutdown_)() = nullptr;
  NvmlDevice device_ = nullptr;
  unsigned long long millijoules_ = 0;
};

}  // namespace

std::unique_ptr<detail::EnergyCounter> detail::nvml_energy() {
  auto counter = std::make_unique<Nvml>();
  if (!counter->open()) return nullptr;
  return counter;
}

}  // namespace tern::report
