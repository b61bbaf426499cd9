/// The parameters of a model: what its parts declare.
#pragma once
#include <vector>

#include "parameters/declaration.hpp"

namespace tern::model {

/// All parts of a resolved model (kv_heads, head_dim, ffn_hidden nonzero), in span order.
Declarations declare(const deck::Model& model);

/// Divided settings of all parts.
std::vector<Divided> divided(const deck::Model& model);

}  // namespace tern::model
