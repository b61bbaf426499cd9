/// Attention by our own tensor-core kernels, under any pattern; contracts as attention_forward and
/// attention_backward in ops/attention.hpp. What the pattern forbids costs next to nothing, at a
/// granularity of 16 queries x 16 keys.
#pragma once
#include "ops/context.hpp"
#include "ops/pattern.hpp"

namespace tern::ops::cuda {

/// Whether the kernels serve head size, scale and pattern. The views must be aligned besides: 16
/// bytes, strides of whole 16 bytes, numbers of a head side by side.
bool pattern_attention_serves(const Pattern&, double scale, std::size_t head_size);

void pattern_attention_forward(const Context&, const Pattern&, double scale, Heads<const bf16> q,
                               Heads<const bf16> k, Heads<const bf16> v, Heads<bf16> out,
                               Matrix<float> lse);
void pattern_attention_backward(const Context&, const Pattern&, double scale, Heads<const bf16> q,
                                Heads<const bf16> k, Heads<const bf16> v, Heads<const bf16> out,
                                Heads<const bf16> dout, Matrix<const float> lse,
                                Matrix<float> delta, Heads<bf16> dq, Heads<bf16> dk,
                                Heads<bf16> dv);

}  // namespace tern::ops::cuda
