/// Measured rates of this machine: each the median of several runs, per second.
#pragma once
#include <functional>
#include <vector>

#include "comm/comm.hpp"
#include "ops/core/context.hpp"

namespace tern::checks::detail {

/// Seconds of one run, after a first one that does not count; fenced.
double median_seconds(const ops::Context& context, const std::function<void()>& run);

/// Bytes read plus bytes written by a copy within the device's memory.
double copy_rate(const ops::Context& context);
/// Bytes copied to the device from pinned memory of the host, and back. Devices only.
struct HostCopies {
  double to_device = 0, to_host = 0;
};
HostCopies host_copy_rates(const ops::Context& context);

/// Floating-point operations of a matrix product with storage T.
template <class T>
double matrix_rate(const ops::Context& context);
/// The same of `rows` rows by a square matrix, in the device's own storage type (Fast).
using Fast = std::conditional_t<on_host, float, bf16>;
double product_rate(const ops::Context& context, std::size_t rows);
/// Rows that such a product takes to reach nine tenths of its best rate.
std::size_t rows_to_fill(const ops::Context& context);
/// Floating-point operations of a product in fp8, whose operands are rounded before. Devices only.
double fp8_rate(const ops::Context& context);

/// Floating-point operations, of allowed pairs, of causal attention with storage Fast.
struct AttentionRates {
  double forward, backward;
};
AttentionRates attention_rates(const ops::Context& context, std::size_t head_size);

/// All-reduce of float over the ranks of the group (collective): bytes of the vector, not traffic.
double all_reduce_rate(const ops::Context& context, comm::Group& group);
/// Bytes per direction between each two ranks, first < second in lexicographic order, one pair
/// after the other, both directions at once. Collective.
std::vector<double> pair_rates(const ops::Context& context, comm::Group& group);

}  // namespace tern::checks::detail
