/// What GPUs of known kinds should give.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace tern::device {

/// Dense rates of the SXM parts, from NVIDIA's data sheets.
struct DataSheet {
  const char *name, *driver;                    // ours; a part of the driver's name
  double tflops_bf16, tflops_fp8, tflops_fp32;  // without fp8: that of bf16
  double terabytes;                             // memory bandwidth, TB/s
  double gib;                                   // memory, as the driver reports it
  double gigabytes_link;                        // NVLink, GB/s per direction
  double gigabits_network;  // adapter per GPU of a DGX node of these, Gbit/s per direction
  double tflops(const std::string& compute) const;  // at &precision compute
};

/// Several may have the same name of ours.
std::span<const DataSheet> data_sheets();
/// Data sheet of the GPU that the driver names so; null if unknown.
const DataSheet* data_sheet_of(std::string_view driver_name);

}  // namespace tern::device
