#include "ops/attention/cuda/causal_bwd_sm90/causal_bwd_sm90.hpp"

#include "base/error.hpp"
#include "ops/attention/cuda/causal_bwd_sm90/launch.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/core/cuda/library.hpp"

namespace tern::ops::cuda {
namespace {

using namespace causal_bwd_sm90;
using sm90::inverse_rope_of, sm90::view_of;

template <class T>
Call call_of(const AttentionBackward<T>& from, void* workspace) {
  const View q = view_of(from.q), k = view_of(from.k);
  const Problem problem{q.batch, q.tokens, q.heads, k.heads, static_cast<float>(from.scale)};
  return {problem,
          q,
          k,
          view_of(from.v),
          view_of(from.out),
          view_of(from.dout),
          view_of(from.dq),
          view_of(from.dk),
          view_of(from.dv),
          from.lse.data(),
          workspace,
          inverse_rope_of(from.rotation)};
}

}  // namespace

template <class T>
bool CausalBackwardSm90::backward(const Context& context, const AttentionBackward<T>& from) {
  const Call call = call_of(from, context.library->workspace());
  if (!detail::runs_sm_90a() || from.pattern.kind != Pattern::Kind::causal ||
      !serves(call.q.head_size, call.problem.tokens) || !detail::aligned_16(call.lse) ||
      workspace_bytes(call.problem) > NativeLibrary::workspace_bytes)
    return false;
  const Arguments arguments =
      make_arguments(call, [&](const View& view) -> const CUtensorMap& { return maps_.of(view); });
  const cudaStream_t stream = detail::stream_of(context);
  const cudaError_t error =
      call.q.head_size == 64
          ? causal_bwd_sm90::backward<T, 64>(stream, arguments, detail::multiprocessors())
          : causal_bwd_sm90::backward<T, 128>(stream, arguments, detail::multiprocessors());
  TERN_REQUIRE(error == cudaSuccess, "causal attention backward: {}", cudaGetErrorString(error));
  return true;
}

template bool CausalBackwardSm90::backward(const Context&, const AttentionBackward<bf16>&);
template bool CausalBackwardSm90::backward(const Context&, const AttentionBackward<fp16>&);

}  // namespace tern::ops::cuda
