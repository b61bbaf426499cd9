#pragma once
#include <filesystem>
#include <memory>

namespace tern::report::detail {

/// A counter of joules that only grows.
class EnergyCounter {
 public:
  virtual ~EnergyCounter() = default;
  virtual double joules() = 0;
};

/// The processors of this host, by Linux' powercap files below `root` (packages intel-rapl:N; the
/// parts of a package are within its count). Null where there are none or they are not readable.
std::unique_ptr<EnergyCounter> rapl_energy(const std::filesystem::path& root);

/// The current CUDA device, by the management library of its driver, opened at run time. Null where
/// that does not report energy.
std::unique_ptr<EnergyCounter> nvml_energy();

}  // namespace tern::report::detail
