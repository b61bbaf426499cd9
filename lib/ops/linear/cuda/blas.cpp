// Kokkos Kernels' header of its cuBLAS handle includes nothing itself, and without its configuration
// it is empty.
#include <KokkosKernels_config.h>

#include <Kokkos_Core.hpp>
#include <sstream>
#include <stdexcept>

#include <KokkosBlas_tpl_spec.hpp>

#include "base/error.hpp"
#include "ops/linear/portable/detail/blas.hpp"

namespace tern::ops::portable::detail {

#if !defined(KOKKOSKERNELS_ENABLE_TPL_CUBLAS)
#error \
    "Kokkos Kernels was built without cuBLAS, so float32 GEMMs would be slow and never in TF32; rebuild it with cuBLAS"
#endif

void set_native_blas_mode(const Context& context) {
  const cublasStatus_t status =
      cublasSetMathMode(KokkosBlas::Impl::CudaBlasSingleton::singleton().handle,
                        context.tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH);
  TERN_REQUIRE(status == CUBLAS_STATUS_SUCCESS, "cublasSetMathMode: status {}", int(status));
}

}  // namespace tern::ops::portable::detail
