/// The implementation of attention that a context's operations take, in words for a log.
#pragma once
#include <string>

#include "ops/attention/attention.hpp"

namespace tern::ops {

/// Attention of whole sequences, as in training.
struct AttentionPass {
  Pattern::Kind kind = Pattern::Kind::causal;
  std::size_t tokens = 0, head_size = 0;
};

namespace detail {
/// T: bf16 for all of 16 bits; float.
template <class T>
std::string native_attention(const Context&, const AttentionPass&);
}  // namespace detail

/// "cuDNN forward, own Hopper kernels backward", "portable (OpenMP)". The context's arena
/// allocates.
template <class T>
std::string attention_implementation(const Context& context, const AttentionPass& pass) {
  if (has_native<AttentionForward<T>>() && context.library)
    return detail::native_attention<std::conditional_t<is_half<T>, bf16, T>>(context, pass);
  return std::string("portable (") + Device::name() + ")";
}

}  // namespace tern::ops
