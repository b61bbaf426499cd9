#include "ops/linear/portable/detail/blas.hpp"

#include <KokkosBlas3_gemm.hpp>

#include "ops/core/operation.hpp"
#include "ops/linear/portable/detail/host_blas.hpp"

namespace tern::ops::portable::detail {

template <class T>
void blas_gemm(const Context& context, const char* op_a, const char* op_b, T alpha,
               Matrix<const T> a, Matrix<const T> b, T beta, Matrix<T> c) {
  static const bool prepared = choose_host_blas_kernels();
  static_cast<void>(prepared);
  if constexpr (native_build) set_native_blas_mode(context);
  const Region region("tern::gemm", [&] {
    const std::size_t summed = a.extent(op_a[0] == 'N' ? 1 : 0);
    return Work{product_flops(c.size(), summed), bytes_of(a) + bytes_of(b) + bytes_of(c)};
  });
  KokkosBlas::gemm(context.space, op_a, op_b, alpha, a, b, beta, c);
}

template void blas_gemm<float>(const Context&, const char*, const char*, float, Matrix<const float>,
                               Matrix<const float>, float, Matrix<float>);
template void blas_gemm<double>(const Context&, const char*, const char*, double,
                                Matrix<const double>, Matrix<const double>, double, Matrix<double>);

}  // namespace tern::ops::portable::detail
