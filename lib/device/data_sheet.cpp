#include "device/data_sheet.hpp"

namespace tern::device {
namespace {

// The driver's name tells the 40 GB A100 from the 80 GB one (2.04 TB/s).
constexpr DataSheet known[] = {
    {"H200", "H200", 989.4, 1978.9, 66.9, 4.8, 140.4, 450, 400},
    {"H100", "H100", 989.4, 1978.9, 66.9, 3.35, 79.6, 450, 400},
    {"A100-40GB", "A100-SXM4-40GB", 312.0, 312.0, 19.5, 1.555, 39.4, 300, 200},
    {"A100-40GB", "A100-PCIE-40GB", 312.0, 312.0, 19.5, 1.555, 39.4, 300, 200},
    {"A100", "A100", 312.0, 312.0, 19.5, 2.039, 79.2, 300, 200}};

}  // namespace

double DataSheet::tflops(const std::string& compute) const {
  if (compute == "tf32") return tflops_bf16 / 2;
  return compute == "fp8" ? tflops_fp8 : compute == "fp32" ? tflops_fp32 : tflops_bf16;
}

std::span<const DataSheet> data_sheets() { return known; }

const DataSheet* data_sheet_of(std::string_view driver_name) {
  for (const DataSheet& one : known)
    if (driver_name.find(one.driver) != std::string_view::npos) return &one;
  return nullptr;
}

}  // namespace tern::device
