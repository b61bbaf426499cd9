// State of the library that answers NVML's calls in tests.
#pragma once
#include <map>
#include <string>

struct FakeGpu {
  unsigned utilization = 0, milliwatts = 0, celsius = 0;
  unsigned long long millijoules = 0;
  bool counts_energy = true;
  int switch_at = 0;  // GPUs of the same switch have the same number
  bool nvlink = true;
  unsigned nvlinks = 0, pcie_generation = 5, pcie_lanes = 16;
};

struct FakeNvml {
  std::map<std::string, FakeGpu> gpus;  // by bus address
  bool starts = true;
  int users = 0;  // nvmlInit less nvmlShutdown
};

extern "C" FakeNvml* fake_nvml();
