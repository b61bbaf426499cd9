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
bool Fp8WeightForward<T>::native(const Context& context, const Fp8WeightForward& call) {
  if (call.y.size() == 0) return true;
  if (call.bias.size() > 0) return false;
  const bool adds = call.added.size() > 0, in_place = !adds || call.added.data() == call.y.data();
  return (in_place &&
          skinny_gemm(*context.library)
              .multiply<T>(detail::stream_of(context), {.x = call.x,
                                                        .w = call.w,
                                                        .coded_x = call.coded,
                                                        .coded_w = call.rounded,
                                                        .y = call.y,
                                                        .added = adds,
                                                        .early = context.constant_weights})) ||
         multiply_codes<T>(context, call.coded, call.rounded, call.y,
                           adds ? call.added.data() : nullptr);
}

TERN_INSTANTIATE_NATIVE(Fp8WeightForward)

}  // namespace tern::ops
