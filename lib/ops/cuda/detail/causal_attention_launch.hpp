/// Host side of causal attention backward: tensor maps, workspace, launches.
#pragma once
#include "ops/cuda/detail/causal_attention_backward.hpp"

namespace tern::ops::cuda::causal_attention {

/// A (B, T, heads, E) view of bf16; strides in numbers. Addresses and strides are multiples of 16
/// bytes.
struct View {
  const void* data;
  std::int64_t batch, row, head;
};

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

/// Map for boxes of 64 rows and 64 columns of one head.
inline CUresult make_map(CUtensorMap& map, const View& view, const Problem& p, int heads,
                         int head_size) {
  constexpr std::int64_t number = 2;
  const auto extent = [](int n) { return static_cast<cuuint64_t>(n); };
  const cuuint64_t extents[] = {extent(head_size), extent(heads), extent(p.tokens),
                                extent(p.batch)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(number * view.head),
                                static_cast<cuuint64_t>(number * view.row),
                                static_cast<cuuint64_t>(number * view.batch)};
  const cuuint32_t box[] = {hopper::tile_width, 1, tile_rows, 1}, steps[] = {1, 1, 1, 1};
  return cuTensorMapEncodeTiled(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(view.data), extents, strides,
      box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

inline CUresult make_arguments(Arguments& to, const Call& call, int head_size) {
  const Problem& p = call.problem;
  const struct {
    CUtensorMap& map;
    const View& view;
    int heads;
  } all[] = {{to.q, call.q, p.heads},       {to.k, call.k, p.kv_heads},
             {to.v, call.v, p.kv_heads},    {to.out, call.out, p.heads},
             {to.dout, call.dout, p.heads}, {to.dq, call.dq, p.heads},
             {to.dk, call.dk, p.kv_heads},  {to.dv, call.dv, p.kv_heads}};
  for (const auto& one : all)
    if (const CUresult result = make_map(one.map, one.view, p, one.heads, head_size);
        result != CUDA_SUCCESS)
      return result;
  to.lse = call.lse;
  to.taken = static_cast<int*>(call.workspace);
  to.statistics = reinterpret_cast<float*>(static_cast<char*>(call.workspace) + counter_bytes);
  to.problem = p;
  return CUDA_SUCCESS;
}

/// The counters in the workspace are 0 before the launch.
template <Owner owner, int E>
cudaError_t launch(cudaStream_t stream, Arguments arguments, int multiprocessors) {
  constexpr auto* kernel = owner == Owner::queries ? &query_gradient<E> : &key_gradient<E>;
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

template <int E>
cudaError_t backward(cudaStream_t stream, const Arguments& arguments, int multiprocessors) {
  if (const auto error = cudaMemsetAsync(arguments.taken, 0, counter_bytes, stream);
      error != cudaSuccess)
    return error;
  if (const auto error = launch<Owner::queries, E>(stream, arguments, multiprocessors);
      error != cudaSuccess)
    return error;
  return launch<Owner::keys, E>(stream, arguments, multiprocessors);
}

}  // namespace tern::ops::cuda::causal_attention
