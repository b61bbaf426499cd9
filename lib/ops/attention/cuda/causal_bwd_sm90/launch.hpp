/// Causal attention backward for Hopper (bf16 or fp16, fp32 sums): two kernels that recompute the
/// weights p = exp(scale q k^T - lse), from FlashAttention-2 (Dao 2023, section 2.3.2) with the warp
/// specialization of FlashAttention-3 (Shah et al. 2024, section 3.1).
///   dv = p^T dout;  ds = p (dout v^T - delta), delta = rowsum(dout out);  dq = scale ds k,
///   dk = scale ds^T q.
///
/// query_gradient: a task is 128 queries of a head, which sums dq over tiles of 64 keys and leaves
/// delta. key_gradient: a task is 128 keys, which sums dk and dv over tiles of 64 queries of all
/// the heads that share them. A warpgroup owns 64 of the rows and sums in a fixed order, in
/// registers, so the results do not depend on which block takes which task.
///
/// Seven products of tiles instead of the five of one kernel, and two exponentials instead of one;
/// but dq needs no sum over blocks, which is either unordered or waits, with its fp32 copy in
/// memory, and ds does not pass through shared memory, whose bandwidth bounds the five products at
/// E = 64. All left operands are in registers, which halves what a product reads there; only k and v
/// of 128 numbers do not fit.
///
/// At E = 64 a warpgroup keeps the tensor cores busy while it computes exponentials: with the scores
/// s of tile j at hand it starts dp of j and s of j + 1, and only then turns s into p. At E = 128
/// registers have no room for two tiles of scores: a warpgroup starts s and dp together, and while it
/// computes exponentials the tensor cores work on dp and for the other warpgroup. That loop does not
/// serve E = 64 as well: ptxas 13.0 then gives the registers of q and k, which the next tile reads
/// again, to p and ds.
#pragma once
#include "ops/attention/cuda/causal_bwd_sm90/warp_groups.hpp"

namespace tern::ops::cuda::causal_bwd_sm90 {

template <Owner owner, int E, class Group>
__device__ __forceinline__ void run_block(const Arguments& args) {
  using S = Shared<owner, E>;
  extern __shared__ char shared[];
  __shared__ __align__(8) std::uint64_t barriers[2 * (S::stages + S::buffers)];
  __shared__ Task tasks[2];
  const std::uint32_t own = tensor_core::shared_address(shared);
  const std::uint32_t base = (own + S::alignment - 1) / S::alignment * S::alignment;
  const std::uint32_t full = tensor_core::shared_address(barriers), empty = full + 8 * S::stages;
  const std::uint32_t own_full = empty + 8 * S::stages;
  const Block<owner, E> block{
      args, {full, empty, own_full, own_full + 8 * S::buffers}, shared + (base - own), base, tasks};
  block.start();
  const int group = static_cast<int>(threadIdx.x) / group_threads;
  if (group == groups) {
    hopper::give_registers<copy_registers>();
    if (threadIdx.x % group_threads == 0) block.copy();
  } else {
    hopper::take_registers<compute_registers>();
    Group{block, group}.compute();
  }
}

// One block per multiprocessor.
template <class T, int E>
__global__ void __launch_bounds__(threads, 1)
    query_gradient(const __grid_constant__ Arguments args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  run_block<Owner::queries, E, QueryGroup<T, E>>(args);
#endif
}
template <class T, int E>
__global__ void __launch_bounds__(threads, 1) key_gradient(const __grid_constant__ Arguments args) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  run_block<Owner::keys, E, KeyGroup<T, E>>(args);
#endif
}

// ---- host side: tensor maps, workspace, launches ----

/// Tokens in multiples of 8, of which lse's rows need 4 for their copies.
struct Call {
  Problem problem;
  View q, k, v, out, dout, dq, dk, dv;
  const float* lse;  // (B*H, T)
  void* workspace;   // workspace_bytes(), aligned to 16 bytes
  InverseRope rope;
};

constexpr std::size_t counter_bytes = 256;  // tasks taken, of each kernel
constexpr std::size_t workspace_bytes(const Problem& p) {
  return counter_bytes + statistics_size(p) * sizeof(float);
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
          .problem = call.problem,
          .rope = call.rope};
}

/// The counters in the workspace are 0 before the launch.
template <class T, Owner owner, int E>
cudaError_t launch(cudaStream_t stream, Arguments arguments, int multiprocessors) {
  constexpr auto* kernel = owner == Owner::queries ? &query_gradient<T, E> : &key_gradient<T, E>;
  constexpr int bytes = Shared<owner, E>::bytes;
  const int tasks = TaskOrder(arguments.problem, owner, E).tasks;
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

}  // namespace tern::ops::cuda::causal_bwd_sm90
