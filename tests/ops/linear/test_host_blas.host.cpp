// OpenBLAS must not treat a processor with vector units as a Pentium 4.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ops/linear/portable/detail/host_blas.hpp"

namespace tern::test {
namespace {

TEST(HostBlas, KernelsFitTheProcessor) {
  EXPECT_TRUE(ops::portable::detail::choose_host_blas_kernels());
  const auto name = reinterpret_cast<char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (!name) return;  // another BLAS chooses for itself
#if defined(__x86_64__)
  const bool vectors = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (vectors && !std::getenv("OPENBLAS_CORETYPE")) {
    EXPECT_STRNE(name(), "Prescott");
  }
#endif
}

}  // namespace
}  // namespace tern::test
