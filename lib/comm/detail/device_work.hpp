/// What NCCL has been given, followed until the device has done it. CUDA builds only.
#pragma once
#if defined(TERN_WITH_CUDA)
#include <cuda_runtime.h>

#include <cstdint>
#include <mutex>

#include "base/error.hpp"
#include "comm/detail/wait.hpp"

namespace tern::comm::detail {

inline void cuda_check(cudaError_t code, const char* what) {
  if (code != cudaSuccess)
    throw InternalError(fmt::format("{} failed: {}", what, cudaGetErrorString(code)));
}

/// Of one communicator: its newest operation, by an event behind it that a thread of all
/// communicators asks for. Where an older one stands still, so does the newest. The thread that
/// gives operations asks nothing of the device: once too many wait there, every call blocks,
/// perhaps that of the asking thread too, and the operation given last stays followed.
class DeviceWork {
 public:
  DeviceWork();
  ~DeviceWork();
  /// `operation` has been given to `stream`.
  void follow(const Operation& operation, void* stream);
  /// Ends following what is done. By the asking thread.
  void ask();

 private:
  cudaEvent_t event_ = nullptr;
  std::mutex mutex_;         // of what follows
  std::uint64_t given_ = 0;  // operations
  Followed followed_;
};

}  // namespace tern::comm::detail
#endif
