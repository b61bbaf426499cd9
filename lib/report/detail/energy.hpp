#pragma once
#include <filesystem>
#include <memory>

namespace tern::report::detail {

/// Monotonic counter of joules.
class EnergyCounter {
 public:
  virtual ~EnergyCounter() = default;
  virtual double joules() = 0;
};

/// Processors of this host, from Linux powercap files below `root` (packages intel-rapl:N, which
/// include their subdomains). Null if there are none or they are not readable.
std::unique_ptr<EnergyCounter> rapl_energy(const std::filesystem::path& root);

/// Current CUDA device, from NVML, opened at run time. Null if NVML does not report energy.
std::unique_ptr<EnergyCounter> nvml_energy();

}  // namespace tern::report::detail
