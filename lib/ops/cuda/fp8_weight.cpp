/// Skinny GEMM with weights in fp8.
#include "ops/fp8_weight.hpp"

#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/detail/skinny_gemm.hpp"
#include "ops/cuda/library.hpp"

namespace tern::ops {
using namespace cuda;

template <class T>
bool native_fp8_weight_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                               const Fp8Weight& rounded, Vector<const T> bias, Matrix<T> y,
                               Matrix<const T> added) {
  if (y.size() == 0) return true;
  const bool adds = added.size() > 0, in_place = !adds || added.data() == y.data();
  return bias.size() == 0 && in_place &&
         context.library->skinny_gemm().multiply<T>(
             detail::stream_of(context), {x, w, rounded, y, adds, context.constant_weights});
}

template decltype(native_fp8_weight_forward<bf16>) native_fp8_weight_forward<bf16>;
template decltype(native_fp8_weight_forward<fp16>) native_fp8_weight_forward<fp16>;

}  // namespace tern::ops
