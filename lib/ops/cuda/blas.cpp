#include <KokkosBlas_tpl_spec.hpp>

#include "base/error.hpp"
#include "ops/portable/detail/blas.hpp"

namespace tern::ops::portable::detail {

void set_native_blas_mode([[maybe_unused]] const Context& context) {
#if defined(KOKKOSKERNELS_ENABLE_TPL_CUBLAS)
  const cublasStatus_t status =
      cublasSetMathMode(KokkosBlas::Impl::CudaBlasSingleton::singleton().handle,
                        context.tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH);
  TERN_REQUIRE(status == CUBLAS_STATUS_SUCCESS, "cublasSetMathMode: status {}", int(status));
#endif
}

}  // namespace tern::ops::portable::detail
