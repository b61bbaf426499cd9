/// Group over an MPI communicator; device data must be in host memory, and is read after a fence.
#pragma once
#include <mpi.h>

#include "comm/comm.hpp"
#include "comm/detail/wait.hpp"

namespace tern::comm::detail {

/// Group over `comm`, which it owns, for this build's device; `name` is for messages. Collective.
std::unique_ptr<Group> make_group(MPI_Comm comm, const std::string& name);

class MpiGroup : public Group {
 public:
  MpiGroup(MPI_Comm comm, const std::string& name);
  ~MpiGroup() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce(double* values, std::size_t n, Sum op) override;
  void all_reduce(std::int64_t* values, std::size_t n, Sum op) override;
  void broadcast(void* bytes, std::size_t n, int root) override;
  void barrier() override;

  void all_reduce(float* data, std::size_t n, const DeviceStream& stream) override;
  void all_reduce(double* data, std::size_t n, const DeviceStream& stream) override;
  void reduce_scatter(float* data, std::size_t n, const DeviceStream& stream) override;
  void reduce_scatter(double* data, std::size_t n, const DeviceStream& stream) override;
  void all_gather(void* data, std::size_t bytes, const DeviceStream& stream) override;
  void broadcast_device(void* data, std::size_t bytes, int root,
                        const DeviceStream& stream) override;
  void all_reduce(bf16* data, std::size_t n, const DeviceStream& stream) override;
  void all_reduce(fp16* data, std::size_t n, const DeviceStream& stream) override;
  void connect(const std::vector<int>&) override {}  // MPI connects by itself
  void exchange(const Message& sent, const Message& received, const DeviceStream& stream) override;
  std::unique_ptr<PartExchange> part_exchange(void* slots, std::size_t bytes) override;
  std::unique_ptr<Group> split(int color, const std::string& name) override {
    return make_group(part(color), name);
  }

 protected:
  /// Communicator of the ranks with the same color. Collective.
  MPI_Comm part(int color) const;
  /// Operation of this group, for a Wait.
  Operation operation(const char* name, std::size_t bytes = 0) const {
    return {name, bytes, members_};
  }
  static Operation with_ranks(Operation operation, const Message& sent, const Message& received);

 private:
  /// Sum of 16-bit numbers, in float.
  template <class T>
  void sum_halves(T* data, std::size_t n, const DeviceStream& stream);

  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  std::shared_ptr<const std::string> members_;  // for messages
  std::vector<float> wide_;                     // float copy of 16-bit data for sums
};

}  // namespace tern::comm::detail
