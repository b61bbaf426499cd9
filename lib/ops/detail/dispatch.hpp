/// Which implementation an operation takes.
#pragma once
#include "ops/cuda/cuda.hpp"
#include "ops/portable/portable.hpp"

namespace tern::ops::detail {

#if defined(KOKKOS_ENABLE_CUDA)
constexpr bool cuda_build = true;
#else
constexpr bool cuda_build = false;
#endif

/// True where cuda:: has a twin for storage type T; it is taken if the context has the libraries.
template <class T>
constexpr bool accelerated = cuda_build&& std::is_same_v<T, bf16>;

}  // namespace tern::ops::detail
