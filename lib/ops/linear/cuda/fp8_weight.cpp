/// Linear maps with weights, or both operands, in fp8: for few rows the skinny GEMM, for more of them
/// cuBLASLt's product of codes, if both have any.
#include "ops/linear/fp8_weight.hpp"

#include "ops/core/cuda/kernels.hpp"
#include "ops/linear/cuda/detail/products.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

template <class T>
bool multiply_codes(const Context& context, const Fp8Rows& x, const Fp8Rows& w, Matrix<T> y,
                    const T* added) {
  if constexpr (std::is_same_v<T, bf16>) {
    const auto operand = [](const Fp8Rows& rows) {
      return Fp8Operand{rows.codes.data(), rows.codes.extent(0), rows.codes.extent(1),
                        CUDA_R_8F_E4M3,    rows.undo.data(),     true};
    };
    return x.wanted() && w.wanted() && y.extent(1) % code_group == 0 &&
           Fp8Product::served_by_device() &&
           detail::all_aligned(x.codes.data(), w.codes.data(), x.undo.data(), w.undo.data(),
                               y.data(), added) &&
           fp8_products(*context.library)
               .multiply_rows({detail::stream_of(context), context.library->workspace(),
                               NativeLibrary::product_bytes},
                              operand(x), operand(w), y.data(), added);
  }
  return false;
}

}  // namespace

template <class T>
bool native_fp8_weight_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                               const Fp8Rows& rounded, Vector<const T> bias, Matrix<T> y,
                               Matrix<const T> added, const Fp8Rows& coded) {
  if (y.size() == 0) return true;
  if (bias.size() > 0) return false;
  const bool adds = added.size() > 0, in_place = !adds || added.data() == y.data();
  return (in_place &&
          skinny_gemm(*context.library)
              .multiply<T>(detail::stream_of(context), {.x = x,
                                                        .w = w,
                                                        .coded_x = coded,
                                                        .coded_w = rounded,
                                                        .y = y,
                                                        .added = adds,
                                                        .early = context.constant_weights})) ||
         multiply_codes<T>(context, coded, rounded, y, adds ? added.data() : nullptr);
}

template decltype(native_fp8_weight_forward<bf16>) native_fp8_weight_forward<bf16>;
template decltype(native_fp8_weight_forward<fp16>) native_fp8_weight_forward<fp16>;

}  // namespace tern::ops
