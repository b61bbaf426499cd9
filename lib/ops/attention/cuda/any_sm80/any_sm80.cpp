/// Host side of attention under any mask: views, sizes, launches.
#include "ops/attention/cuda/any_sm80/any_sm80.hpp"

#include <limits>

#include "ops/attention/cuda/any_sm80/backward.hpp"
#include "ops/attention/cuda/any_sm80/forward.hpp"
#include "ops/core/cuda/kernels.hpp"

namespace tern::ops::cuda {
namespace {

using namespace any_sm80;

template <class T>
HeadsView<T> view_of(const Heads<T>& x) {
  constexpr std::size_t limit = std::numeric_limits<int>::max();
  TERN_REQUIRE(x.stride(1) <= limit && x.stride(2) <= limit, "strides {} and {}", x.stride(1),
               x.stride(2));
  return {x.data(), static_cast<std::int64_t>(x.stride(0)), static_cast<int>(x.stride(1)),
          static_cast<int>(x.stride(2))};
}

template <class T>
Problem problem_of(const Pattern& pattern, double scale, const Heads<const T>& q,
                   const Heads<const T>& k) {
  const auto size = [](std::size_t n) { return static_cast<int>(n); };
  return {pattern,           {size(q.extent(1)), size(k.extent(1))},
          size(q.extent(0)), size(q.extent(2)),
          size(k.extent(2)), static_cast<float>(scale)};
}

template <class Body>
void with_head_size(std::size_t size, const Body& body) {
  if (size == 32)
    body(std::integral_constant<int, 32>());
  else if (size == 64)
    body(std::integral_constant<int, 64>());
  else
    body(std::integral_constant<int, 128>());
}

/// One block per tile of `length` positions, head and sequence.
template <class Arguments>
void launch(const Context& context, const char* name, Pass pass, HeadRow row,
            void (*kernel)(Arguments), int length, int heads, const Arguments& arguments) {
  constexpr int limit = 65535;  // grid limit in y and z
  const int batch = arguments.problem.batch;
  TERN_REQUIRE(heads <= limit && batch <= limit, "{}: {} heads, {} sequences", name, heads, batch);
  if (length == 0 || heads == 0 || batch == 0) return;
  const dim3 grid(static_cast<unsigned>(tiles_of(length)), static_cast<unsigned>(heads),
                  static_cast<unsigned>(batch));
  const int bytes = shared_bytes(pass, row);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<grid, threads, bytes, detail::stream_of(context)>>>(arguments);
  detail::check_launch(name);
}

}  // namespace

template <class T>
bool any_sm80_serves(const Pattern& pattern, double scale, std::size_t head_size) {
  static const int shared_limit = detail::device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const bool aligned = detail::aligned_16(pattern.spans) && detail::aligned_16(pattern.hulls);
  const HeadRow row{static_cast<int>(head_size), sizeof(T)};
  return serves(head_size) && shared_bytes(Pass::backward_key, row) <= shared_limit && scale > 0 &&
         (pattern.kind != Pattern::Kind::spans || aligned);
}

template <class T>
void any_sm80_forward(const Context& context, const AttentionForward<T>& call) {
  const Forward<T> arguments{problem_of(call.pattern, call.scale, call.q, call.k),
                             view_of(call.q),
                             view_of(call.k),
                             view_of(call.v),
                             view_of(call.out),
                             call.lse.data()};
  const Problem& p = arguments.problem;
  with_head_size(call.q.extent(3), [&](auto size) {
    launch(context, "any_sm80 forward", Pass::forward, row_of<T, size()>, &forward<T, size()>,
           p.extent.queries, p.heads, arguments);
  });
}

template <class T>
void any_sm80_backward(const Context& context, const AttentionBackward<T>& call) {
  const Backward<T> arguments{problem_of(call.pattern, call.scale, call.q, call.k),
                              view_of(call.q),
                              view_of(call.k),
                              view_of(call.v),
                              view_of(call.out),
                              view_of(call.dout),
                              call.lse.data(),
                              call.delta.data(),
                              view_of(call.dq),
                              view_of(call.dk),
                              view_of(call.dv)};
  const Problem& p = arguments.problem;
  with_head_size(call.q.extent(3), [&](auto size) {
    launch(context, "any_sm80 backward for dq", Pass::backward_query, row_of<T, size()>,
           &backward_query<T, size()>, p.extent.queries, p.heads, arguments);
    launch(context, "any_sm80 backward for dk and dv", Pass::backward_key, row_of<T, size()>,
           &backward_key<T, size()>, p.extent.keys, p.kv_heads, arguments);
  });
}

#define INSTANTIATE(T)                                                        \
  template bool any_sm80_serves<T>(const Pattern&, double, std::size_t);      \
  template void any_sm80_forward(const Context&, const AttentionForward<T>&); \
  template void any_sm80_backward(const Context&, const AttentionBackward<T>&);
INSTANTIATE(bf16)
INSTANTIATE(fp16)
INSTANTIATE(float)

}  // namespace tern::ops::cuda
