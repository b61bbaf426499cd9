/// Linear maps through cuBLASLt's fp8 products, which need both operands
/// contiguous along the summed index: forward reads them straight, backward transposed.

#include "ops/linear/fp8.hpp"
#include "ops/elementwise/cuda/rounding.hpp"
#include "ops/linear/cuda/detail/products.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;
using Sums = Fp8Product::Sums;

Fp8Operand operand(const Matrix<std::uint8_t>& codes, const Fp8Matrix& of) {
  return {codes.data(), codes.extent(0), codes.extent(1),
          of.format == Fp8Format::e4m3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2, of.scale.undo.data()};
}

Fp8Product::Work work_of(const Context& context) {
  return {stream_of(context), context.library->workspace(), NativeLibrary::product_bytes};
}

}  // namespace

bool native_fp8_linear_forward(const Context& context, const Fp8Workspace<bf16>&,
                               const Fp8Matrix& x, const Fp8Matrix& w, Vector<const bf16> bias,
                               Matrix<bf16> y, Matrix<const bf16> added) {
  if (y.size() == 0) return true;
  if (!all_aligned_of(x) || !all_aligned_of(w) || !all_aligned(bias.data(), y.data(), added.data()))
    return false;
  fp8_products(*context.library)
      .multiply(work_of(context), operand(x.straight, x), operand(w.straight, w), Sums::fast,
                y.data(), added.size() ? added.data() : nullptr,
                bias.size() ? bias.data() : nullptr);
  return true;
}

bool native_fp8_linear_backward_weight(const Context& context, const Fp8Workspace<bf16>&,
                                       const Fp8Matrix& dy, const Fp8Matrix& x, Matrix<float> dw,
                                       Write write) {
  if (dy.transposed.size() == 0) return true;
  if (!all_aligned_of(dy) || !all_aligned_of(x) || !all_aligned(dw.data())) return false;
  fp8_products(*context.library)
      .multiply(work_of(context), operand(dy.transposed, dy), operand(x.transposed, x),
                Sums::promoted, dw.data(), write == Write::add ? 1.0f : 0.0f);
  return true;
}

bool native_fp8_linear_backward_input(const Context& context, const Fp8Workspace<bf16>&,
                                      const Fp8Matrix& dy, const Fp8Matrix& w, Matrix<bf16> dx) {
  if (dx.size() == 0) return true;
  if (!all_aligned_of(dy) || !all_aligned_of(w) || !all_aligned(dx.data())) return false;
  fp8_products(*context.library)
      .multiply(work_of(context), operand(dy.straight, dy), operand(w.transposed, w),
                Sums::promoted, dx.data(), nullptr);
  return true;
}

}  // namespace tern::ops
