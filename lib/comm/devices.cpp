#include "comm/detail/devices.hpp"

#include <set>

#include "base/error.hpp"
#include "comm/comm.hpp"
#include "comm/gpu.hpp"

namespace tern::comm {
namespace detail {

int device_of(int local_rank, int visible, const std::string& why) {
  if (visible < 1)
    user_error(
        "no GPU is visible ({}), and this program was built for GPUs; run it on a node with GPUs "
        "(under Slurm with --gpus-per-node), or build for CPUs (cmake --preset cpu)",
        why);
  return local_rank % visible;
}

void require_own_devices(const std::vector<std::string>& taken) {
  const std::size_t devices = std::set<std::string>(taken.begin(), taken.end()).size();
  if (devices < taken.size())
    user_error(
        "{} ranks on this node share {} GPU{}, and each rank needs its own; start {} per node "
        "(mpirun -n {}, srun --ntasks-per-node={}), or request more GPUs",
        taken.size(), devices, devices > 1 ? "s" : "", devices, devices, devices);
}

}  // namespace detail

int Session::device() const {
  if constexpr (!gpu::built) return 0;
  std::string why;
  const int visible = gpu::count(why);
  const int device = detail::device_of(local_rank(), visible, why);
  detail::require_own_devices(of_local_ranks(gpu::identity(device)));
  return device;
}

}  // namespace tern::comm
