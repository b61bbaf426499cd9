/// Devices whose data sheet is known.
#pragma once
#include <string>

namespace tern::plan::detail {

/// Dense rates of the SXM parts, by NVIDIA's data sheets.
struct KnownDevice {
  const char *name, *driver;                        // ours; and what the driver's name of it holds
  double tflops_bf16, tflops_fp8, tflops_fp32;      // fp8: bf16's where it has none
  double terabytes;                                 // of memory a second
  double gib;                                       // of memory, as the driver tells
  double gigabytes_link;                            // NVLink a second, each way
  double tflops(const std::string& compute) const;  // by &precision compute
};

}  // namespace tern::plan::detail
