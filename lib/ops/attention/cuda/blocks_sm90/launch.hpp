/// Host side of the kernels under key spans for Hopper: arguments, workspace, launches.
#pragma once
#include "ops/attention/cuda/blocks_sm90/backward.hpp"
#include "ops/attention/cuda/blocks_sm90/forward.hpp"

namespace tern::ops::cuda::blocks_sm90 {

using sm90::View;

/// More share the tiles of keys, and leave fewer registers for each.
constexpr int forward_groups = 3;

/// Copies of lse and spans need queries in multiples of 4, and both aligned to 16 bytes. For
/// forward the views from dout on are empty.
struct Call {
  Problem problem;
  View q, k, v, out, dout, dq, dk, dv;
  float* lse;       // (B*H, Tq)
  void* workspace;  // forward_bytes() or backward_bytes(), aligned to 16 bytes
  sm90::InverseRope rope;
};

constexpr int passes = 3;
constexpr std::size_t counter_bytes = 256;  // tasks taken, of each pass
inline std::size_t forward_bytes(const Problem& p) {
  constexpr std::size_t unit = 256;
  return counter_bytes + (seen_size(p) * sizeof(Seen) + unit - 1) / unit * unit;
}
inline std::size_t backward_bytes(const Problem& p) {
  return forward_bytes(p) + statistics_size(p) * sizeof(float);
}

/// `map_of` gives the map of a view.
template <class MapOf>
Arguments make_arguments(const Call& call, const MapOf& map_of) {
  const auto map = [&](const View& view) { return view.data ? map_of(view) : CUtensorMap{}; };
  char* const workspace = static_cast<char*>(call.workspace);
  return {.q = map(call.q),
          .k = map(call.k),
          .v = map(call.v),
          .out = map(call.out),
          .dout = map(call.dout),
          .dq = map(call.dq),
          .dk = map(call.dk),
          .dv = map(call.dv),
          .lse = call.lse,
          .statistics = reinterpret_cast<float*>(workspace + forward_bytes(call.problem)),
          .seen = reinterpret_cast<Seen*>(workspace + counter_bytes),
          .taken = reinterpret_cast<int*>(workspace),
          .problem = call.problem,
          .rope = call.rope};
}

/// After find().
template <class Group>
cudaError_t launch(cudaStream_t stream, Arguments arguments, int multiprocessors) {
  using Own = typename Group::Own;
  constexpr auto* kernel = &attention<Group>;
  constexpr int bytes = Own::S::bytes;
  const int tasks = TaskOrder(arguments.problem, Own::pass, Own::groups).tasks;
  if (tasks == 0) return cudaSuccess;
  arguments.taken += static_cast<int>(Own::pass);
  if (const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      error != cudaSuccess)
    return error;
  const int blocks = tasks < multiprocessors ? tasks : multiprocessors;
  kernel<<<static_cast<unsigned>(blocks), threads<Own::groups>, bytes, stream>>>(arguments);
  return cudaGetLastError();
}

inline cudaError_t find(cudaStream_t stream, const Arguments& arguments) {
  const std::size_t blocks = (seen_size(arguments.problem) + group_warps - 1) / group_warps;
  if (blocks == 0) return cudaSuccess;
  find_tiles<passes><<<static_cast<unsigned>(blocks), group_threads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

template <class T, int groups = forward_groups>
cudaError_t forward(cudaStream_t stream, const Arguments& arguments, int multiprocessors) {
  if (const auto error = find(stream, arguments); error != cudaSuccess) return error;
  return launch<ForwardGroup<T, groups>>(stream, arguments, multiprocessors);
}

template <class T>
cudaError_t backward(cudaStream_t stream, const Arguments& arguments, int multiprocessors) {
  if (const auto error = find(stream, arguments); error != cudaSuccess) return error;
  if (const auto error = launch<QueryGroup<T>>(stream, arguments, multiprocessors);
      error != cudaSuccess)
    return error;
  return launch<KeyGroup<T>>(stream, arguments, multiprocessors);
}

}  // namespace tern::ops::cuda::blocks_sm90
