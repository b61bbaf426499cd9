/// Attention with our own tensor-core kernels, under any pattern; contracts as AttentionForward
/// and AttentionBackward. Masked pairs cost next to nothing, at a granularity
/// of 16 queries x 16 keys. T: bf16, fp16, or float, multiplied in TF32 (operands from memory are
/// truncated to it, as by cuBLAS on Hopper, weights and their gradients rounded).
#pragma once
#include "ops/attention/attention.hpp"

namespace tern::ops::cuda {

/// Whether the kernels serve head size, scale and pattern on this device. Views must also be
/// aligned: addresses and strides in multiples of 16 bytes, heads contiguous.
template <class T>
bool any_sm80_serves(const Pattern&, double scale, std::size_t head_size);

template <class T>
void any_sm80_forward(const Context&, const AttentionForward<T>&);
template <class T>
void any_sm80_backward(const Context&, const AttentionBackward<T>&);

}  // namespace tern::ops::cuda
