/// Native attention. With &model attention = 'auto' a call takes the first of these that serves it:
///   backward only: detail/causal_attention.hpp, for causal training on Hopper with E = 64;
///   cuDNN (detail/cudnn_attention.hpp), for whole sequences, causal or full;
///   detail/span_attention.hpp, for key spans in training on Hopper with E = 64;
///   detail/pattern_attention.hpp, for all patterns;
///   the portable definition.
/// 'cudnn': without the first and the third, and an error where cuDNN refuses. 'portable': the last.
#include "ops/attention.hpp"
#include "ops/cuda/detail/causal_attention.hpp"
#include "ops/cuda/detail/cudnn_attention.hpp"
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/detail/pattern_attention.hpp"
#include "ops/cuda/detail/span_attention.hpp"
#include "ops/cuda/library.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

template <class T>
HeadTensor tensor(const Heads<T>& x) {
  return {x.data(), static_cast<std::int64_t>(x.stride(0)), static_cast<std::int64_t>(x.stride(2)),
          static_cast<std::int64_t>(x.stride(1))};
}

/// Whether all of the views allow 16-byte accesses.
template <class... V>
bool suit(const V&... views) {
  const auto suits = [](const auto& x) {
    return aligned_16(x.data()) && x.stride(0) % pack_size == 0 && x.stride(1) % pack_size == 0 &&
           x.stride(2) % pack_size == 0 && x.stride(3) == 1;
  };
  return (suits(views) && ...);
}

/// Of these cuDNN and causal_attention.hpp take care. In decoding, where the number of keys changes
/// with every token, cuDNN would need a plan for each length.
template <class T>
bool whole_sequences(const Pattern& pattern, const Heads<const T>& q, const Heads<const T>& k) {
  const bool known = pattern.kind == Pattern::Kind::causal || pattern.kind == Pattern::Kind::full;
  return known && q.extent(1) == k.extent(1) && pattern.query_offset == 0 &&
         q.extent(3) % pack_size == 0;
}

template <class T>
AttentionShape shape_of(const Pattern& pattern, double scale, const Heads<const T>& q,
                        const Heads<const T>& k) {
  return {static_cast<std::int64_t>(q.extent(0)),
          static_cast<std::int64_t>(q.extent(2)),
          static_cast<std::int64_t>(k.extent(2)),
          static_cast<std::int64_t>(q.extent(1)),
          static_cast<std::int64_t>(q.extent(3)),
          pattern.kind == Pattern::Kind::causal,
          std::is_same_v<T, fp16>,
          static_cast<float>(scale)};
}

CudnnAttention::Work work_of(const Context& context) {
  return {context.handle(), context.library->workspace(), Library::workspace_bytes};
}

/// After a refusal: an error if the deck demands cuDNN.
void refused(Library& library, const AttentionShape& s) {
  if (library.cudnn_required())
    user_error(
        "&model attention = 'cudnn': cuDNN refuses {} heads ({} of keys) of size {} over {} "
        "tokens ({}): choose 'auto'",
        s.heads, s.kv_heads, s.head_size, s.tokens, library.attention()->refusal());
}

/// Whether our own kernels serve this, for aligned views.
template <class T>
bool own_kernels_serve(const Library& library, const Pattern& pattern, double scale,
                       const Heads<const T>& q) {
  return library.own_attention() && pattern_attention_serves(pattern, scale, q.extent(3));
}

}  // namespace

template <class T>
bool native_attention_forward(const Context& context, const AttentionForward<T>& call) {
  if (call.out.size() == 0) return true;
  const bool aligned = suit(call.q, call.k, call.v, call.out);
  CudnnAttention* cudnn = context.library->attention();
  if (cudnn && aligned && whole_sequences(call.pattern, call.q, call.k)) {
    const AttentionShape shape = shape_of(call.pattern, call.scale, call.q, call.k);
    if (cudnn->forward(
            work_of(context), shape,
            {tensor(call.q), tensor(call.k), tensor(call.v), tensor(call.out), call.lse.data()}))
      return true;
    refused(*context.library, shape);
  }
  SpanAttention* spans = context.library->span_attention();
  if (spans && aligned && spans->forward(context, call)) return true;
  if (!aligned || !own_kernels_serve(*context.library, call.pattern, call.scale, call.q))
    return false;
  pattern_attention_forward(context, call);
  return true;
}

template <class T>
bool native_attention_backward(const Context& context, const AttentionBackward<T>& call) {
  if (call.out.size() == 0) return true;
  const bool aligned = suit(call.q, call.k, call.v, call.out, call.dout, call.dq, call.dk, call.dv);
  const bool whole = aligned && whole_sequences(call.pattern, call.q, call.k);
  CausalAttention* causal = context.library->causal_attention();
  if (causal && whole && causal->backward(context, call)) return true;
  CudnnAttention* cudnn = context.library->attention();
  if (cudnn && whole) {
    const AttentionShape shape = shape_of(call.pattern, call.scale, call.q, call.k);
    if (cudnn->backward(
            work_of(context), shape,
            {tensor(call.q), tensor(call.k), tensor(call.v), tensor(call.out), tensor(call.dout),
             tensor(call.dq), tensor(call.dk), tensor(call.dv), call.lse.data()}))
      return true;
    refused(*context.library, shape);
  }
  SpanAttention* spans = context.library->span_attention();
  if (spans && aligned && spans->backward(context, call)) return true;
  if (!aligned || !own_kernels_serve(*context.library, call.pattern, call.scale, call.q))
    return false;
  pattern_attention_backward(context, call);
  return true;
}

#define INSTANTIATE(T)                                                        \
  template decltype(native_attention_forward<T>) native_attention_forward<T>; \
  template decltype(native_attention_backward<T>) native_attention_backward<T>;
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
