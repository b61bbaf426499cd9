/// GEMM of the BLAS that Kokkos Kernels was built with. Its header and the many kernels behind it
/// are compiled in one source only.
#pragma once
#include "ops/core/context.hpp"
#include "ops/core/recorder.hpp"

namespace tern::ops::portable::detail {

/// c (M, N) = alpha op(a) op(b) + beta c, where op is "N" (none) or "T" (transposed) and c is not
/// read if beta is 0. T: float or double; float in TF32 if
/// the context says so.
template <class T>
void blas_gemm(const Context&, const char* op_a, const char* op_b, T alpha, Matrix<const T> a,
               Matrix<const T> b, T beta, Matrix<T> c);

/// Of the BLAS handle that Kokkos Kernels uses, from the context. Where there are native operations.
void set_native_blas_mode(const Context&);

}  // namespace tern::ops::portable::detail
