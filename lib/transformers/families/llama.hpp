/// What Llama's descendants share with it.
#pragma once
#include "transformers/detail/family.hpp"

namespace tern::transformers::detail {

/// The model of Llama's settings: RMSNorm, rotary positions, SwiGLU, no biases, untied head. Heads
/// have hidden / heads values if head_dim is absent.
deck::Model read_llama(Settings&);
Json write_llama(const deck::Model&);

/// Files have Tern's names, with dots.
std::vector<TensorLocation> locations_of_llama(const std::string& parameter, const Shape& shape,
                                               const deck::Model&);
/// Rotary frequencies.
bool recomputed_by_llama(const std::string& tensor);

}  // namespace tern::transformers::detail
