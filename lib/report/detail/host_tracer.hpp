/// Times calls of operations and Kokkos kernels by the host's clock.
#pragma once
#include "report/detail/tracer.hpp"

namespace tern::report::detail {

std::unique_ptr<Tracer> make_host_tracer();

}  // namespace tern::report::detail
