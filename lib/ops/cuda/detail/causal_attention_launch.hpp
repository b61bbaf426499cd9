/// Host side of causal attention backward: tensor maps, workspace, launches.
#pragma once
#include "ops/cuda/detail/causal_attention_backward.hpp"

namespace tern::ops::cuda::causal_attention {

/// Tokens in multiples of 8, of which lse's rows need 4 for their copies.
struct Call {
  Problem problem;
  View q, k, v, out, dout, dq, dk, dv;
  const float* lse;  // (B*H, T)
  void* workspace;   // workspace_bytes(), aligned to 16 bytes
};

constexpr std::size_t counter_bytes = 256;  // tasks taken, of each kernel
constexpr std::size_t workspace_bytes(const Problem& p) {
  return counter_bytes + statistics_size(p) * sizeof(float);
}

/// Map for boxes of 64 rows and 64 columns of one head. Copies do not interpret the numbers: it
/// serves any type of 16 bits.
inline CUresult make_map(CUtensorMap& map, const View& view) {
  const auto extent = [](int n) { return static_cast<cuuint64_t>(n); };
  const auto bytes = [](std::int64_t stride) { return static_cast<cuuint64_t>(2 * stride); };
  const cuuint64_t extents[] = {extent(view.head_size), extent(view.heads), extent(view.tokens),
                                extent(view.batch)};
  const cuuint64_t strides[] = {bytes(view.head_stride), bytes(view.row_stride),
                                bytes(view.batch_stride)};
  const cuuint32_t box[] = {hopper::tile_width, 1, tile_rows, 1}, steps[] = {1, 1, 1, 1};
  return cuTensorMapEncodeTiled(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(view.data), extents, strides,
      box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/// `map_of` gives the map of a view.
template <class MapOf>
Arguments make_arguments(const Call& call, const MapOf& map_of) {
  char* const workspace = static_cast<char*>(call.workspace);
  return {.q = map_of(call.q),
          .k = map_of(call.k),
          .v = map_of(call.v),
          .out = map_of(call.out),
          .dout = map_of(call.dout),
          .dq = map_of(call.dq),
          .dk = map_of(call.dk),
          .dv = map_of(call.dv),
          .lse = call.lse,
          .statistics = reinterpret_cast<float*>(workspace + counter_bytes),
          .taken = reinterpret_cast<int*>(workspace),
          .problem = call.problem};
}

/// The counters in the workspace are 0 before the launch.
template <class T, Owner owner, int E>
cudaError_t launch(cudaStream_t stream, Arguments arguments, int multiprocessors) {
  constexpr auto* kernel = owner == Owner::queries ? &query_gradient<T, E> : &key_gradient<T, E>;
  constexpr int bytes = Shared<owner, E>::bytes;
  const int tasks = TaskOrder(arguments.problem, owner).tasks;
  if (owner == Owner::keys) ++arguments.taken;
  if (const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      error != cudaSuccess)
    return error;
  kernel<<<static_cast<unsigned>(tasks < multiprocessors ? tasks : multiprocessors), threads, bytes,
           stream>>>(arguments);
  return cudaGetLastError();
}

template <class T, int E>
cudaError_t backward(cudaStream_t stream, const Arguments& arguments, int multiprocessors) {
  if (const auto error = cudaMemsetAsync(arguments.taken, 0, counter_bytes, stream);
      error != cudaSuccess)
    return error;
  if (const auto error = launch<T, Owner::queries, E>(stream, arguments, multiprocessors);
      error != cudaSuccess)
    return error;
  return launch<T, Owner::keys, E>(stream, arguments, multiprocessors);
}

}  // namespace tern::ops::cuda::causal_attention
