// Force-included when Kokkos 4.5 or 4.6 meets CUDA 13: the CUDA 12 signatures that CUDA 13 removed,
// as overloads over the new ones. Kokkos >= 4.7.1 calls the new signatures itself.
#pragma once
#if defined(__CUDACC__) && defined(__cplusplus)
#include <cuda_runtime_api.h>
#if CUDART_VERSION >= 13000
inline cudaMemLocation tern_cuda12_location(int device) {
  cudaMemLocation where{};
  where.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  where.id = device == cudaCpuDeviceId ? 0 : device;
  return where;
}
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
inline cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t count, int device,
                                        cudaStream_t stream = nullptr) {
  return cudaMemPrefetchAsync(pointer, count, tern_cuda12_location(device), 0u, stream);
}
inline cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice,
                                 int device) {
  return cudaMemAdvise(pointer, count, advice, tern_cuda12_location(device));
}
#endif
#endif
