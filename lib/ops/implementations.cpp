#include "ops/implementations.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "ops/portable/detail/host_blas.hpp"
#if defined(TERN_NATIVE_OPERATIONS)
#include "ops/cuda/detail/causal_attention_tasks.hpp"
#include "ops/cuda/detail/cudnn_attention.hpp"
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/detail/pattern_attention.hpp"
#include "ops/cuda/library.hpp"
#endif

namespace tern::ops::detail {

#if defined(TERN_NATIVE_OPERATIONS)
namespace {

constexpr const char* hopper_kernels = "native Hopper kernels";

/// The implementation that takes any pattern.
template <class T>
const char* general(const NativeLibrary& library, const AttentionPass& pass) {
  const bool own = library.own_attention() &&
                   cuda::pattern_attention_serves<T>({.kind = pass.kind}, 1.0, pass.head_size);
  return own ? "native tensor-core kernels" : "portable";
}

}  // namespace

// The order of ops/cuda/attention.cpp; what the kernels for Hopper serve is stated in
// causal_attention.hpp and span_attention.hpp.
template <>
std::string native_attention<bf16>(const Context& context, const AttentionPass& pass) {
  NativeLibrary& library = *context.library;
  const bool hopper = cuda::detail::runs_sm_90a() && pass.head_size == 64;
  if (pass.kind == Pattern::Kind::spans)
    return hopper && library.span_attention() && pass.tokens % 4 == 0
               ? hopper_kernels
               : general<bf16>(library, pass);
  const char* forward = library.attention() ? "cuDNN" : general<bf16>(library, pass);
  const bool own_backward = cuda::detail::runs_sm_90a() && library.causal_attention() &&
                            cuda::causal_attention::serves(pass.head_size, pass.tokens) &&
                            pass.kind == Pattern::Kind::causal;
  if (!own_backward) return forward;
  return fmt::format("{} forward, {} backward", forward, hopper_kernels);
}

template <>
std::string native_attention<float>(const Context& context, const AttentionPass& pass) {
  return context.tf32 ? general<float>(*context.library, pass) : "portable";
}

std::string native_products(Products products) {
  return products == Products::fastest
             ? "cuBLASLt, fastest algorithm per shape (timed once, cached)"
             : "cuBLASLt, first heuristic algorithm per shape";
}
#else
template <class T>
std::string native_attention(const Context&, const AttentionPass&) {
  return {};
}
template std::string native_attention<bf16>(const Context&, const AttentionPass&);
template std::string native_attention<float>(const Context&, const AttentionPass&);
std::string native_products(Products) { return {}; }
#endif

#if defined(TERN_NATIVE_OPERATIONS)
std::string blas() { return "cuBLAS"; }
#else
std::string blas() {
  portable::detail::choose_host_blas_kernels();
  const auto core = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return core ? fmt::format("OpenBLAS, kernels for {}", core()) : "BLAS of Kokkos Kernels";
}
#endif

}  // namespace tern::ops::detail
