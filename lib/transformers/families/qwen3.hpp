/// What Qwen3-MoE shares with Qwen3.
#pragma once
#include "transformers/families/llama.hpp"

namespace tern::transformers::detail {

/// Llama with norms of queries and keys.
deck::Model read_qwen3(Settings&);
Json write_qwen3(const deck::Model&);

}  // namespace tern::transformers::detail
