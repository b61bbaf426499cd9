#include "comm/detail/devices.hpp"

#include <set>

#include "base/error.hpp"
#include "comm/comm.hpp"
#if defined(TERN_WITH_CUDA)
#include <cuda_runtime.h>
#endif

namespace tern::comm {
namespace detail {

int device_of(int local_rank, int visible, const std::string& why) {
  if (visible < 1)
    user_error(
        "no GPU can be seen here ({}), and this program was built for CUDA: run it on a node with "
        "GPUs (under Slurm with --gpus-per-node), or build one for processors (cmake --preset cpu)",
        why);
  return local_rank % visible;
}

void require_own_devices(const std::vector<std::string>& taken) {
  const std::size_t devices = std::set<std::string>(taken.begin(), taken.end()).size();
  if (devices < taken.size())
    user_error(
        "{} ranks of this node have {} GPU{} between them, and each rank needs its own: start {} "
        "per "
        "node (mpirun -n {}, srun --ntasks-per-node={}), or ask for more GPUs",
        taken.size(), devices, devices > 1 ? "s" : "", devices, devices, devices);
}

}  // namespace detail

#if defined(TERN_WITH_CUDA)
int Session::device() const {
  int visible = 0;
  const cudaError_t code = cudaGetDeviceCount(&visible);
  const int device =
      detail::device_of(local_rank(), code == cudaSuccess ? visible : 0, cudaGetErrorString(code));
  cudaDeviceProp properties{};
  if (const cudaError_t failed = cudaGetDeviceProperties(&properties, device);
      failed != cudaSuccess)
    user_error("GPU {} cannot be used: {}; nvidia-smi shows its state", device,
               cudaGetErrorString(failed));
  const std::string own(properties.uuid.bytes, sizeof properties.uuid.bytes);
  detail::require_own_devices(of_local_ranks(own));
  return device;
}
#else
int Session::device() const { return 0; }
#endif

}  // namespace tern::comm
