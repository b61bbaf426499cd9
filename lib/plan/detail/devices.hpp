/// Devices whose data sheet is known.
#pragma once
#include "device/data_sheet.hpp"

namespace tern::plan::detail {

using KnownDevice = device::DataSheet;

}  // namespace tern::plan::detail
