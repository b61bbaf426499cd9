/// The device that a plan is for.
#pragma once
#include <string>

#include "memory/arena.hpp"

namespace tern::plan {

namespace detail {
struct KnownDevice;
}

/// This rank's device, or another GPU that a dry run plans for. A value.
class PlannedDevice {
 public:
  /// This rank's.
  PlannedDevice() = default;
  /// A GPU of this name ('h100', 'h200', 'a100', 'a100-40gb'); empty: this rank's. UserError for a
  /// name that is not known.
  explicit PlannedDevice(const std::string& name);

  bool is_gpu() const;
  /// The name of a known GPU ('H200'), another's as its driver has it, or the host's threads
  /// ('OpenMP, 2 threads').
  std::string name() const;
  /// Of a GPU that is not here: with nothing on it but what the driver and the libraries take.
  DeviceCapacity capacity() const;
  /// Its data sheet; null on the host and for GPUs that are not known.
  const detail::KnownDevice* data_sheet() const;

 private:
  const detail::KnownDevice* elsewhere_ = nullptr;
};

}  // namespace tern::plan
