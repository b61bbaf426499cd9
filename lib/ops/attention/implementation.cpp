#include "ops/attention/implementation.hpp"

#include <fmt/format.h>

#if defined(TERN_NATIVE_OPERATIONS)
#include "ops/attention/cuda/any_sm80/any_sm80.hpp"
#include "ops/attention/cuda/causal_bwd_sm90/tasks.hpp"
#include "ops/attention/cuda/implementations.hpp"
#include "ops/core/cuda/kernels.hpp"
#endif

namespace tern::ops::detail {

#if defined(TERN_NATIVE_OPERATIONS)
namespace {

constexpr const char* hopper_kernels = "native Hopper kernels";

/// The implementation that takes any pattern.
template <class T>
const char* general(const Context& context, const AttentionPass& pass) {
  const bool own = cuda::implementations(context).any_sm80() &&
                   cuda::any_sm80_serves<T>({.kind = pass.kind}, 1.0, pass.head_size);
  return own ? "native tensor-core kernels" : "portable";
}

}  // namespace

// The order of cuda/attention.cpp; what the kernels for Hopper serve is stated in the
// headers of causal_bwd_sm90 and blocks_sm90.
template <>
std::string native_attention<bf16>(const Context& context, const AttentionPass& pass) {
  const cuda::Implementations admitted = cuda::implementations(context);
  const bool hopper = cuda::detail::runs_sm_90a() && pass.head_size == 64;
  if (pass.kind == Pattern::Kind::spans)
    return hopper && admitted.blocks_sm90() && pass.tokens % 4 == 0 ? hopper_kernels
                                                                    : general<bf16>(context, pass);
  const char* forward = admitted.cudnn() ? "cuDNN" : general<bf16>(context, pass);
  const bool own_backward = cuda::detail::runs_sm_90a() && admitted.causal_backward_sm90() &&
                            cuda::causal_bwd_sm90::serves(pass.head_size, pass.tokens) &&
                            pass.kind == Pattern::Kind::causal;
  if (!own_backward) return forward;
  return fmt::format("{} forward, {} backward", forward, hopper_kernels);
}

template <>
std::string native_attention<float>(const Context& context, const AttentionPass& pass) {
  return context.tf32 ? general<float>(context, pass) : "portable";
}

#else
template <class T>
std::string native_attention(const Context&, const AttentionPass&) {
  return {};
}
template std::string native_attention<bf16>(const Context&, const AttentionPass&);
template std::string native_attention<float>(const Context&, const AttentionPass&);
#endif

}  // namespace tern::ops::detail
