#include "ops/attention/cuda/blocks_sm90/blocks_sm90.hpp"

#include "base/error.hpp"
#include "ops/attention/cuda/blocks_sm90/launch.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/core/cuda/library.hpp"

namespace tern::ops::cuda {
namespace {

using namespace blocks_sm90;
using sm90::TensorMaps, sm90::view_of;

constexpr int token_multiple = 4;  // of lse, in copies of 16 bytes

/// Without the views of backward.
template <class From>
Call call_of(const Context& context, const From& from, float* lse) {
  const View q = view_of(from.q), k = view_of(from.k);
  const Problem problem{from.pattern, {q.tokens, k.tokens},          q.batch, q.heads,
                        k.heads,      static_cast<float>(from.scale)};
  Call call{};
  call.problem = problem;
  call.q = q;
  call.k = k;
  call.v = view_of(from.v);
  call.out = view_of(from.out);
  call.lse = lse;
  call.workspace = context.library->workspace();
  return call;
}

bool serves(const Call& call, std::size_t workspace_bytes) {
  const Problem& p = call.problem;
  return detail::runs_sm_90a() && p.pattern.kind == Pattern::Kind::spans && p.scale > 0 &&
         call.q.head_size == head_size && p.extent.queries % token_multiple == 0 &&
         p.extent.queries == p.extent.keys && p.extent.queries == p.pattern.queries &&
         detail::all_aligned(call.lse, p.pattern.spans, p.pattern.hulls) &&
         workspace_bytes <= NativeLibrary::workspace_bytes;
}

Arguments arguments_of(const Call& call, TensorMaps& maps) {
  return make_arguments(call,
                        [&](const View& view) -> const CUtensorMap& { return maps.of(view); });
}

void require(cudaError_t error, const char* pass) {
  TERN_REQUIRE(error == cudaSuccess, "span attention {}: {}", pass, cudaGetErrorString(error));
}

}  // namespace

template <class T>
bool BlocksSm90::forward(const Context& context, const AttentionForward<T>& from) {
  const Call call = call_of(context, from, from.lse.data());
  if (!serves(call, forward_bytes(call.problem))) return false;
  require(blocks_sm90::forward<T>(detail::stream_of(context), arguments_of(call, maps_),
                                  detail::multiprocessors()),
          "forward");
  return true;
}

template <class T>
bool BlocksSm90::backward(const Context& context, const AttentionBackward<T>& from) {
  Call call = call_of(context, from, const_cast<float*>(from.lse.data()));  // which is only read
  if (!serves(call, backward_bytes(call.problem))) return false;
  call.dout = view_of(from.dout);
  call.dq = view_of(from.dq);
  call.dk = view_of(from.dk);
  call.dv = view_of(from.dv);
  call.rope = sm90::inverse_rope_of(from.rotation);
  require(blocks_sm90::backward<T>(detail::stream_of(context), arguments_of(call, maps_),
                                   detail::multiprocessors()),
          "backward");
  return true;
}

#define INSTANTIATE(T)                                                           \
  template bool BlocksSm90::forward(const Context&, const AttentionForward<T>&); \
  template bool BlocksSm90::backward(const Context&, const AttentionBackward<T>&);
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops::cuda
