/// Measured rates of this machine: each the median of several runs, per second.
#pragma once
#include "comm/comm.hpp"
#include "ops/context.hpp"

namespace tern::checks::detail {

/// Bytes read plus bytes written by a copy within the device's memory.
double copy_rate(const ops::Context& context);
/// Floating-point operations of a matrix product with storage T.
template <class T>
double matrix_rate(const ops::Context& context);
/// All-reduce of float over the ranks of the group (collective): bytes of the vector, not traffic.
double all_reduce_rate(const ops::Context& context, comm::Group& group);

}  // namespace tern::checks::detail
