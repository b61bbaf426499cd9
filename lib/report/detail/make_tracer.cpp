#include "report/detail/host_tracer.hpp"

namespace tern::report::detail {

#if defined(KOKKOS_ENABLE_CUDA)
std::unique_ptr<Tracer> make_cupti_tracer(std::string& trouble);  // cuda/cupti.cpp
#endif

std::unique_ptr<Tracer> make_tracer([[maybe_unused]] std::string& trouble) {
#if defined(KOKKOS_ENABLE_CUDA)
  return make_cupti_tracer(trouble);
#else
  return make_host_tracer();
#endif
}

}  // namespace tern::report::detail
