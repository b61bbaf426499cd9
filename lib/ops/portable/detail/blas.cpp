#include "ops/portable/detail/blas.hpp"

#include <KokkosBlas3_gemm.hpp>

#include "ops/portable/detail/host_blas.hpp"

namespace tern::ops::portable::detail {

template <class T>
void blas_gemm(const Context& context, const char* op_a, const char* op_b, T alpha,
               Matrix<const T> a, Matrix<const T> b, T beta, Matrix<T> c) {
  static const bool prepared = choose_host_blas_kernels();
  static_cast<void>(prepared);
  KokkosBlas::gemm(context.space, op_a, op_b, alpha, a, b, beta, c);
}

template void blas_gemm<float>(const Context&, const char*, const char*, float, Matrix<const float>,
                               Matrix<const float>, float, Matrix<float>);
template void blas_gemm<double>(const Context&, const char*, const char*, double,
                                Matrix<const double>, Matrix<const double>, double, Matrix<double>);

}  // namespace tern::ops::portable::detail
