#include "checks/detail/expected.hpp"

#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <algorithm>

#include "checks/detail/rates.hpp"
#include "comm/gpu.hpp"
#include "device/this_device.hpp"

namespace tern::checks::detail {

Expectations::Expectations(int ranks_of_host) : sheet_(device::this_data_sheet()) {
  if constexpr (on_host) {
    processor_ = device::processor();
    cores_ = std::max(1, std::min(Device().concurrency(), processor_.cores / ranks_of_host));
  } else if (const auto nvml = device::Nvml::open()) {
    pcie_ = nvml->pcie(comm::gpu::bus_address());
  }
}

std::string Expectations::of_sheet() const { return fmt::format("{}'s data sheet", sheet_->name); }

Expected Expectations::copy() const {
  if (!sheet_) return {};
  return {1e3 * sheet_->terabytes, of_sheet()};
}

Expected Expectations::host_copy() const {
  if (!pcie_) return {};
  return {pcie_->gigabytes(), fmt::format("PCIe {} x{}", pcie_->generation, pcie_->lanes)};
}

Expected Expectations::connection(const std::string& name) const {
  if (name == device::connection_name(device::Connection::nvlink))
    return sheet_ ? Expected{sheet_->gigabytes_link, of_sheet()} : Expected{};
  for (const auto pcie :
       {device::Connection::pcie_switch, device::Connection::pcie_switches,
        device::Connection::host_bridge, device::Connection::numa_node, device::Connection::host})
    if (name == device::connection_name(pcie)) return host_copy();
  return {};
}

Expected Expectations::products(const std::string& compute) const {
  if (sheet_ && compute != "double") return {sheet_->tflops(compute), of_sheet()};
  const bool wide = compute == "double";
  if (cores_ == 0 || processor_.flops_per_cycle == 0 || !(wide || compute == "fp32")) return {};
  const int per_cycle = processor_.flops_per_cycle / (wide ? 2 : 1);
  return {processor_.gflops(cores_) / (wide ? 2 : 1),
          fmt::format("{} core{} x {:.1f} GHz x {}", cores_, cores_ > 1 ? "s" : "",
                      processor_.gigahertz, per_cycle)};
}

}  // namespace tern::checks::detail
