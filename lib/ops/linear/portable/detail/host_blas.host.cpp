#include "ops/linear/portable/detail/host_blas.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

namespace tern::ops::portable::detail {

#if defined(__x86_64__)
namespace {

/// Newest kernels that this processor can run among those of every OpenBLAS since 2018; null if
/// only Prescott's.
const char* fitting_core() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
  return nullptr;
}

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

bool choose_host_blas_kernels() {
  constexpr const char* variable = "OPENBLAS_CORETYPE";
  const auto core_name = find<char*()>("openblas_get_corename");
  // OpenBLAS's initialization at load time, which reads the variable.
  const auto quit = find<void()>("gotoblas_dynamic_quit"),
             init = find<void()>("gotoblas_dynamic_init");
  const char* core = fitting_core();
  if (!core_name || !quit || !init || !core || std::getenv(variable)) return true;
  if (std::string_view(core_name()) != "Prescott") return true;
  setenv(variable, core, 1);
  quit();
  init();
  unsetenv(variable);
  return true;
}
#else
bool choose_host_blas_kernels() { return true; }
#endif

}  // namespace tern::ops::portable::detail
