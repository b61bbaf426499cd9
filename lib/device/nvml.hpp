/// What NVIDIA's management library (NVML) tells of GPUs: sensors and connections. It comes with
/// the driver, not the toolkit: it is opened at run time, and nothing depends on it.
#pragma once
#include <memory>
#include <optional>
#include <string>

namespace tern::device {

/// Readings of one GPU. Absent: not reported.
struct Readings {
  std::optional<double> utilization;  // fraction of the last sample period with a kernel running
  std::optional<double> watts;        // mean of the last second on Ampere and later
  std::optional<double> celsius;      // of the chip
  std::optional<double> joules;       // since the driver was loaded
};

/// Connection of two GPUs of a host, from the closest to the farthest.
enum class Connection { nvlink, pcie_switch, pcie_switches, host_bridge, numa_node, host };

struct PcieLink {
  int generation, lanes;
  /// GB/s per direction, after line coding.
  double gigabytes() const;
};

class Nvml {
 public:
  /// Null if the library, or a function that it has always had, is missing, or it does not start.
  static std::shared_ptr<const Nvml> open(const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // GPUs by bus address (comm/gpu.hpp). Each call takes microseconds to milliseconds.

  /// Whether NVML knows the GPU.
  bool knows(const std::string& gpu) const;
  Readings read(const std::string& gpu) const;
  std::optional<Connection> connection(const std::string& one, const std::string& other) const;
  /// NVLinks in use, toward GPUs or switches.
  int nvlinks(const std::string& gpu) const;
  /// The best that GPU and host support together.
  std::optional<PcieLink> pcie(const std::string& gpu) const;

 private:
  Nvml() = default;
  struct Functions;
  std::unique_ptr<Functions> functions_;
};

/// "NVLink", "one PCIe switch", ...
const char* connection_name(Connection connection);

}  // namespace tern::device
