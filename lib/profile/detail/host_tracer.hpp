/// Times calls of operations and Kokkos kernels by the host's clock.
#pragma once
#include "profile/detail/tracer.hpp"

namespace tern::profile::detail {

std::unique_ptr<Tracer> make_host_tracer();

}  // namespace tern::profile::detail
