/// Native attention. With &model attention = 'auto' a call takes the first of these that serves it:
///   causal_bwd_sm90, backward only: causal masks in training on Hopper, E = 64 or 128;
///   cudnn: whole sequences, causal or full;
///   blocks_sm90: key spans in training on Hopper, E = 64;
///   any_sm80: all masks, and the only one for float32 in TF32;
///   the portable version.
/// 'cudnn': without the first and the third, and an error where cuDNN refuses. 'portable': the last.
#include "ops/attention/attention.hpp"
#include "ops/attention/cuda/any_sm80/any_sm80.hpp"
#include "ops/attention/cuda/implementations.hpp"
#include "ops/core/cuda/kernels.hpp"

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
    const std::size_t unit = 16 / sizeof(*x.data());
    return aligned_16(x.data()) && x.stride(0) % unit == 0 && x.stride(1) % unit == 0 &&
           x.stride(2) % unit == 0 && x.stride(3) == 1;
  };
  return (suits(views) && ...);
}

/// Whether cudnn and causal_bwd_sm90 may serve the call. In decoding, where the number of keys changes
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
  return {context.handle(), context.library->workspace(), NativeLibrary::workspace_bytes};
}

/// After a refusal: an error if the deck demands cuDNN.
void refused(const Implementations& admitted, const AttentionShape& s) {
  if (admitted.cudnn_required())
    user_error(
        "&model attention = 'cudnn': cuDNN does not support {} heads ({} of keys) of size {} over "
        "{} tokens ({}); set attention = 'auto'",
        s.heads, s.kv_heads, s.head_size, s.tokens, admitted.cudnn()->refusal());
}

/// The implementations for 16 bits that serve some of the shapes only.
template <class T>
bool special_forward(const Context& context, const AttentionForward<T>& call) {
  CudnnAttention* cudnn = implementations(context).cudnn();
  if (cudnn && whole_sequences(call.pattern, call.q, call.k)) {
    const AttentionShape shape = shape_of(call.pattern, call.scale, call.q, call.k);
    if (cudnn->forward(
            work_of(context), shape,
            {tensor(call.q), tensor(call.k), tensor(call.v), tensor(call.out), call.lse.data()}))
      return true;
    refused(implementations(context), shape);
  }
  BlocksSm90* spans = implementations(context).blocks_sm90();
  return spans && spans->forward(context, call);
}

/// causal_bwd_sm90 and blocks_sm90 undo the rotation before they store.
template <class T>
bool special_backward(const Context& context, const AttentionBackward<T>& call) {
  const bool whole = whole_sequences(call.pattern, call.q, call.k);
  CausalBackwardSm90* causal = implementations(context).causal_backward_sm90();
  if (causal && whole && causal->backward(context, call)) return true;
  CudnnAttention* cudnn = implementations(context).cudnn();
  if (cudnn && whole) {
    const AttentionShape shape = shape_of(call.pattern, call.scale, call.q, call.k);
    if (cudnn->backward(
            work_of(context), shape,
            {tensor(call.q), tensor(call.k), tensor(call.v), tensor(call.out), tensor(call.dout),
             tensor(call.dq), tensor(call.dk), tensor(call.dv), call.lse.data()})) {
      undo_rotation(context, call);
      return true;
    }
    refused(implementations(context), shape);
  }
  BlocksSm90* spans = implementations(context).blocks_sm90();
  return spans && spans->backward(context, call);
}

/// Whether any_sm80 serves this, for aligned views.
template <class T>
bool any_sm80_may_serve(const Context& context, const Pattern& pattern, double scale,
                        const Heads<const T>& q) {
  const bool allowed = implementations(context).any_sm80() && (is_half<T> || context.tf32);
  return allowed && any_sm80_serves<T>(pattern, scale, q.extent(3));
}

}  // namespace

template <class T>
bool AttentionForward<T>::native(const Context& context, const AttentionForward& call) {
  if (call.out.size() == 0) return true;
  if (!suit(call.q, call.k, call.v, call.out)) return false;
  if constexpr (is_half<T>)
    if (special_forward(context, call)) return true;
  if (!any_sm80_may_serve(context, call.pattern, call.scale, call.q)) return false;
  any_sm80_forward(context, call);
  return true;
}

template <class T>
bool AttentionBackward<T>::native(const Context& context, const AttentionBackward& call) {
  if (call.out.size() == 0) return true;
  if (!suit(call.q, call.k, call.v, call.out, call.dout, call.dq, call.dk, call.dv)) return false;
  if constexpr (is_half<T>)
    if (special_backward(context, call)) return true;
  if (!any_sm80_may_serve(context, call.pattern, call.scale, call.q)) return false;
  any_sm80_backward(context, call);
  undo_rotation(context, call);
  return true;
}

template bool AttentionForward<float>::native(const Context&, const AttentionForward<float>&);
TERN_INSTANTIATE_NATIVE(AttentionForward)
template bool AttentionBackward<float>::native(const Context&, const AttentionBackward<float>&);
TERN_INSTANTIATE_NATIVE(AttentionBackward)

}  // namespace tern::ops
