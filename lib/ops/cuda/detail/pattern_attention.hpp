/// Attention with our own tensor-core kernels, under any pattern; contracts as attention_forward
/// and attention_backward in ops/attention.hpp. Masked pairs cost next to nothing, at a granularity
/// of 16 queries x 16 keys. T: bf16, fp16, or float, multiplied in TF32 (operands from memory are
/// truncated to it, as by cuBLAS on Hopper, weights and their gradients rounded).
#pragma once
#include "ops/attention.hpp"

namespace tern::ops::cuda {

/// Whether the kernels serve head size, scale and pattern on this device. Views must also be
/// aligned: addresses and strides in multiples of 16 bytes, heads contiguous.
template <class T>
bool pattern_attention_serves(const Pattern&, double scale, std::size_t head_size);

template <class T>
void pattern_attention_forward(const Context&, const AttentionForward<T>&);
template <class T>
void pattern_attention_backward(const Context&, const AttentionBackward<T>&);

}  // namespace tern::ops::cuda
