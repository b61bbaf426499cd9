#include "comm/gpu_peers.hpp"

#include <algorithm>

#include "base/error.hpp"
#if defined(TERN_WITH_CUDA)
#include <cuda.h>
#include <cuda_runtime_api.h>
#endif

namespace tern::comm::gpu {

#if defined(TERN_WITH_CUDA)
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(SharedMemory::handle));

void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess)
    throw InternalError(fmt::format("{}: {}", what, cudaGetErrorString(code)));
}
void check(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS)
    throw InternalError(fmt::format("{}: error {}", what, static_cast<int>(code)));
}
/// Clears the runtime's last error, which a later check would report.
bool succeeded(cudaError_t code) {
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
  return code == cudaSuccess;
}

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

SharedMemory share(void* memory) {
  SharedMemory shared;
  CUdeviceptr begin = 0;
  cudaIpcMemHandle_t handle;
  if (cuMemGetAddressRange(&begin, nullptr, address(memory)) != CUDA_SUCCESS ||
      !succeeded(cudaIpcGetMemHandle(&handle, memory)))
    return shared;
  std::copy_n(handle.reserved, shared.handle.size(), shared.handle.begin());
  shared.first = address(memory) - begin;
  shared.valid = true;
  return shared;
}

std::shared_ptr<void> open(const SharedMemory& shared) {
  cudaIpcMemHandle_t handle;
  std::copy_n(shared.handle.begin(), shared.handle.size(), handle.reserved);
  void* begin = nullptr;
  if (!shared.valid ||
      !succeeded(cudaIpcOpenMemHandle(&begin, handle, cudaIpcMemLazyEnablePeerAccess)))
    return nullptr;
  const std::shared_ptr<void> allocation(
      begin, [](void* opened) { static_cast<void>(cudaIpcCloseMemHandle(opened)); });
  return {allocation, static_cast<char*>(begin) + shared.first};
}

void start_copy(void* to, const void* from, std::size_t bytes, void* stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)),
        "cudaMemcpyAsync between GPUs");
}
void write_word(std::uint32_t* word, std::uint32_t value, void* stream) {
  check(cuStreamWriteValue32(static_cast<CUstream>(stream), address(word), value,
                             CU_STREAM_WRITE_VALUE_DEFAULT),
        "cuStreamWriteValue32");
}
void await_word(std::uint32_t* word, std::uint32_t value, void* stream) {
  check(cuStreamWaitValue32(static_cast<CUstream>(stream), address(word), value,
                            CU_STREAM_WAIT_VALUE_EQ),
        "cuStreamWaitValue32");
}
#else
SharedMemory share(void*) { return {}; }
std::shared_ptr<void> open(const SharedMemory&) { return nullptr; }
void start_copy(void*, const void*, std::size_t, void*) {}
void write_word(std::uint32_t*, std::uint32_t, void*) {}
void await_word(std::uint32_t*, std::uint32_t, void*) {}
#endif

}  // namespace tern::comm::gpu
