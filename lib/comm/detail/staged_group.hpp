/// Device data over an MPI that reads host memory only: copied to the host, sent, copied back. For
/// GPUs without NCCL or RCCL; on the host the copies are from memory to memory.
#pragma once
#include <vector>

#include "comm/detail/mpi_group.hpp"

namespace tern::comm::detail {

class StagedGroup : public MpiGroup {
 public:
  using MpiGroup::MpiGroup;

  void all_reduce(float* data, std::size_t n, const DeviceStream& stream) override;
  void all_reduce(double* data, std::size_t n, const DeviceStream& stream) override;
  void all_reduce(bf16* data, std::size_t n, const DeviceStream& stream) override;
  void all_reduce(fp16* data, std::size_t n, const DeviceStream& stream) override;
  void reduce_scatter(float* data, std::size_t n, const DeviceStream& stream) override;
  void reduce_scatter(double* data, std::size_t n, const DeviceStream& stream) override;
  void all_gather(void* data, std::size_t bytes, const DeviceStream& stream) override;
  void broadcast_device(void* data, std::size_t bytes, int root,
                        const DeviceStream& stream) override;
  void exchange(const Message& sent, const Message& received, const DeviceStream& stream) override;
  std::unique_ptr<PartExchange> part_exchange(void*, std::size_t) override { return nullptr; }
  std::unique_ptr<Group> split(int color, const std::string& name) override {
    return std::make_unique<StagedGroup>(part(color), name);
  }
  using MpiGroup::all_reduce;

 private:
  template <class T>
  void staged_sum(T* data, std::size_t n, const DeviceStream& stream);
  template <class T>
  void staged_scatter(T* data, std::size_t n, const DeviceStream& stream);
  /// At least `bytes` of host memory, kept for the next call.
  char* staging(std::size_t bytes);

  std::vector<char> staging_;
};

}  // namespace tern::comm::detail
