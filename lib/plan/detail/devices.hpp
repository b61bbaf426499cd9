/// Devices whose data sheet is known.
#pragma once
#include <string>

namespace tern::plan::detail {

/// Dense rates of the SXM parts, from NVIDIA's data sheets.
struct KnownDevice {
  const char *name, *driver;                    // ours; a part of the driver's name
  double tflops_bf16, tflops_fp8, tflops_fp32;  // without fp8: that of bf16
  double terabytes;                             // memory bandwidth, TB/s
  double gib;                                   // memory, as the driver reports it
  double gigabytes_link;                        // NVLink, per second and direction
  double gigabits_network;  // adapter per GPU of a DGX node of these, per second and direction
  double tflops(const std::string& compute) const;  // at &precision compute
};

}  // namespace tern::plan::detail
