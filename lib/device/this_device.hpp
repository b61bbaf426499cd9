/// This rank's device.
#pragma once
#include "device/data_sheet.hpp"

namespace tern::device {

/// Data sheet of this rank's GPU; null on the host and for unknown GPUs.
const DataSheet* this_data_sheet();

}  // namespace tern::device
