#include "device/this_device.hpp"

#include "comm/gpu.hpp"

namespace tern::device {

const DataSheet* this_data_sheet() { return data_sheet_of(comm::gpu::name()); }

}  // namespace tern::device
