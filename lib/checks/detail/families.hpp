/// Cases of each family of operations, one source per family. A case here checks a new operation
/// with a native kernel on the device.
#pragma once
#include "base/error.hpp"
#include "checks/detail/run.hpp"

namespace tern::checks {

void check_linear(Checker& checker);
void check_fp8(Checker& checker);
void check_norm(Checker& checker);
void check_attention(Checker& checker);
void check_activation(Checker& checker);
void check_elementwise(Checker& checker);
void check_embedding(Checker& checker);
void check_connection(Checker& checker);
void check_loss(Checker& checker);
void check_optimizer(Checker& checker);
void check_paged_cache(Checker& checker);
void check_experts(Checker& checker);

}  // namespace tern::checks
