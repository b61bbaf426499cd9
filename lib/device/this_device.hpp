/// This rank's device.
#pragma once
#include <string>

#include "device/data_sheet.hpp"

namespace tern::device {

/// Driver's name of this rank's GPU; empty on the host.
std::string driver_name();
/// Its address on the PCI bus ("0000:1B:00.0"), which NVML and Linux know it by, whatever
/// CUDA_VISIBLE_DEVICES says; empty on the host.
std::string bus_address();
/// Its data sheet; null on the host and for unknown GPUs.
const DataSheet* this_data_sheet();

}  // namespace tern::device
