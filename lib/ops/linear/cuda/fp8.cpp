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

template <class T>
bool Fp8LinearForward<T>::native(const Context& context, const Fp8LinearForward& call) {
  if (call.y.size() == 0) return true;
  if (!all_aligned_of(call.x) || !all_aligned_of(call.w) ||
      !all_aligned(call.bias.data(), call.y.data(), call.added.data()))
    return false;
  fp8_products(*context.library)
      .multiply(work_of(context), operand(call.x.straight, call.x),
                operand(call.w.straight, call.w), Sums::fast, call.y.data(),
                call.added.size() ? call.added.data() : nullptr,
                call.bias.size() ? call.bias.data() : nullptr);
  return true;
}

template <class T>
bool Fp8LinearBackwardWeight<T>::native(const Context& context,
                                        const Fp8LinearBackwardWeight& call) {
  if (call.dy.transposed.size() == 0) return call.write == Write::add;
  if (!all_aligned_of(call.dy) || !all_aligned_of(call.x) || !all_aligned(call.dw.data()))
    return false;
  fp8_products(*context.library)
      .multiply(work_of(context), operand(call.dy.transposed, call.dy),
                operand(call.x.transposed, call.x), Sums::promoted, call.dw.data(),
                call.write == Write::add ? 1.0f : 0.0f);
  return true;
}

template <class T>
bool Fp8LinearBackwardInput<T>::native(const Context& context, const Fp8LinearBackwardInput& call) {
  if (call.dx.size() == 0) return true;
  if (!all_aligned_of(call.dy) || !all_aligned_of(call.w) || !all_aligned(call.dx.data()))
    return false;
  fp8_products(*context.library)
      .multiply(work_of(context), operand(call.dy.straight, call.dy),
                operand(call.w.transposed, call.w), Sums::promoted, call.dx.data(), nullptr);
  return true;
}

template bool Fp8LinearForward<bf16>::native(const Context&, const Fp8LinearForward<bf16>&);
template bool Fp8LinearBackwardWeight<bf16>::native(const Context&,
                                                    const Fp8LinearBackwardWeight<bf16>&);
template bool Fp8LinearBackwardInput<bf16>::native(const Context&,
                                                   const Fp8LinearBackwardInput<bf16>&);

}  // namespace tern::ops
