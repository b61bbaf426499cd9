#include "ops/linear/implementation.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "ops/linear/portable/detail/host_blas.hpp"

namespace tern::ops::detail {

#if defined(TERN_NATIVE_OPERATIONS)
std::string native_products(Products products) {
  return products == Products::fastest
             ? "cuBLASLt, fastest algorithm per shape (timed once, cached)"
             : "cuBLASLt, first heuristic algorithm per shape";
}
std::string blas() { return "cuBLAS"; }
#else
std::string native_products(Products) { return {}; }
std::string blas() {
  portable::detail::choose_host_blas_kernels();
  const auto core = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return core ? fmt::format("OpenBLAS, kernels for {}", core()) : "BLAS of Kokkos Kernels";
}
#endif

}  // namespace tern::ops::detail
