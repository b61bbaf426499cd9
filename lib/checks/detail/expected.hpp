/// What this rank's device should give: a GPU's data sheet, NVML's PCI Express link, or a nominal
/// peak of the host's processor. Local.
#pragma once
#include <memory>

#include "checks/diagnosis.hpp"
#include "device/data_sheet.hpp"
#include "device/host.hpp"
#include "device/nvml.hpp"

namespace tern::checks::detail {

class Expectations {
 public:
  /// `ranks_of_host`: share its cores.
  explicit Expectations(int ranks_of_host);
  /// For tests.
  Expectations(const device::DataSheet* sheet, std::optional<device::PcieLink> pcie,
               device::Processor processor, int cores)
      : sheet_(sheet), pcie_(pcie), processor_(std::move(processor)), cores_(cores) {}

  /// GB/s.
  Expected copy() const;
  Expected host_copy() const;
  Expected connection(const std::string& name) const;
  /// TFLOP/s of products at &precision compute, on the host GFLOP/s; also "double".
  Expected products(const std::string& compute) const;

 private:
  std::string of_sheet() const;

  const device::DataSheet* sheet_ = nullptr;  // null on the host and for unknown GPUs
  std::optional<device::PcieLink> pcie_;
  device::Processor processor_;  // on the host
  int cores_ = 0;                // 0 on a GPU
};

}  // namespace tern::checks::detail
