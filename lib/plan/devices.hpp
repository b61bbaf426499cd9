/// Device of a plan: this rank's, or an imagined one.
#pragma once
#include <string>

#include "memory/arena.hpp"

namespace tern::plan {

namespace detail {
struct KnownDevice;
}

/// This rank's device, or the imagined device of a dry run. A value type.
class PlannedDevice {
 public:
  /// This rank's device.
  PlannedDevice() = default;
  /// GPU of this name ('h100', 'h200', 'a100', 'a100-40gb'); empty: this rank's device. Throws
  /// UserError for an unknown name.
  explicit PlannedDevice(const std::string& name);

  bool is_gpu() const;
  /// Name of a known GPU ('H200'), else the driver's name of the GPU, or the host backend
  /// ('OpenMP, 2 threads').
  std::string name() const;
  /// An imagined GPU is empty but for the memory of driver and libraries.
  DeviceCapacity capacity() const;
  /// Data sheet; null on the host and for unknown GPUs.
  const detail::KnownDevice* data_sheet() const;

 private:
  const detail::KnownDevice* elsewhere_ = nullptr;
};

}  // namespace tern::plan
