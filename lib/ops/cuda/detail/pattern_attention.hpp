/// Attention by our own tensor-core kernels, under any pattern; contracts as attention_forward and
/// attention_backward in ops/attention.hpp. What the pattern forbids costs next to nothing, at a
/// granularity of 16 queries x 16 keys.
#pragma once
#include "ops/attention.hpp"

namespace tern::ops::cuda {

/// Whether the kernels serve head size, scale and pattern. The views must be aligned besides: 16
/// bytes, strides of whole 16 bytes, numbers of a head side by side.
bool pattern_attention_serves(const Pattern&, double scale, std::size_t head_size);

void pattern_attention_forward(const Context&, const AttentionForward<bf16>&);
void pattern_attention_backward(const Context&, const AttentionBackward<bf16>&);

}  // namespace tern::ops::cuda
