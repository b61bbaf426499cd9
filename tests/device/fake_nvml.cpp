// NVML's functions with the types and codes of nvml.h.
#include "fake_nvml.hpp"

#include <cstring>

namespace {

constexpr int success = 0, uninitialized = 1, invalid_argument = 2, not_supported = 3,
              not_found = 6;

struct Utilization {
  unsigned gpu, memory;
};

}  // namespace

extern "C" {

FakeNvml* fake_nvml() {
  static FakeNvml nvml;
  return &nvml;
}

int nvmlInit_v2() {
  if (!fake_nvml()->starts) return 9;  // driver not loaded
  ++fake_nvml()->users;
  return success;
}
int nvmlShutdown() { return fake_nvml()->users-- > 0 ? success : uninitialized; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, FakeGpu** gpu) {
  if (fake_nvml()->users < 1) return uninitialized;
  const auto found = fake_nvml()->gpus.find(bus);
  if (found == fake_nvml()->gpus.end()) return not_found;
  *gpu = &found->second;
  return success;
}
int nvmlDeviceGetUtilizationRates(FakeGpu* gpu, Utilization* percent) {
  *percent = {gpu->utilization, 1};
  return success;
}
int nvmlDeviceGetPowerUsage(FakeGpu* gpu, unsigned* milliwatts) {
  *milliwatts = gpu->milliwatts;
  return success;
}
int nvmlDeviceGetTemperature(FakeGpu* gpu, unsigned sensor, unsigned* celsius) {
  if (sensor != 0) return invalid_argument;
  *celsius = gpu->celsius;
  return success;
}
int nvmlDeviceGetTotalEnergyConsumption(FakeGpu* gpu, unsigned long long* millijoules) {
  if (!gpu->counts_energy) return not_supported;
  *millijoules = gpu->millijoules;
  return success;
}
int nvmlDeviceGetP2PStatus(FakeGpu* a, FakeGpu* b, unsigned index, unsigned* status) {
  if (index != 2) return invalid_argument;
  *status = a->nvlink && b->nvlink ? 0 : 5;
  return success;
}
int nvmlDeviceGetTopologyCommonAncestor(FakeGpu* a, FakeGpu* b, unsigned* level) {
  *level = a->switch_at == b->switch_at ? 10 : 50;
  return success;
}
int nvmlDeviceGetNvLinkState(FakeGpu* gpu, unsigned link, unsigned* active) {
  if (link >= 18) return invalid_argument;
  *active = link < gpu->nvlinks ? 1 : 0;
  return success;
}
int nvmlDeviceGetMaxPcieLinkGeneration(FakeGpu* gpu, unsigned* generation) {
  *generation = gpu->pcie_generation;
  return success;
}
int nvmlDeviceGetMaxPcieLinkWidth(FakeGpu* gpu, unsigned* lanes) {
  *lanes = gpu->pcie_lanes;
  return success;
}
}
