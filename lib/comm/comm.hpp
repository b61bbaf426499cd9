/// The mesh of ranks and its collectives. MPI starts, agrees and carries host data; NCCL (RCCL)
/// carries device data in builds for GPUs. One rank drives one device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/device_stream.hpp"
#include "base/types.hpp"
#include "comm/part_exchange.hpp"

namespace tern::comm {

enum class Sum { sum, max, min };

/// Created once by main(), before Kokkos. Reads the Slurm/OpenMPI environment through MPI.
class Session {
 public:
  Session(int* argc, char*** argv);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  int rank() const;
  int size() const;
  /// Rank among those that share this host's memory.
  int local_rank() const;
  int local_size() const;
  /// Index of this rank's device among those it can see. UserError if there is none, or if two
  /// ranks would take the same. Collective over the ranks of a node.
  int device() const;

 private:
  /// Gathers `own`, of equal length on all ranks of this node, by local rank. Collective over them.
  std::vector<std::string> of_local_ranks(const std::string& own) const;
};

/// Runs `body` and returns its exit code. An exception on any rank prints one message (the lowest
/// failing rank's) and ends all ranks with code 1 (UserError) or 70 (anything else); never hangs.
int run_ranks(const std::function<int()>& body);

/// A group of ranks. All member functions are collective unless marked local.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;  // local
  virtual int size() const = 0;  // local

  // Host data, blocking.
  virtual void all_reduce(double* values, std::size_t n, Sum op) = 0;
  virtual void all_reduce(std::int64_t* values, std::size_t n, Sum op) = 0;
  virtual void broadcast(void* bytes, std::size_t n, int root) = 0;
  virtual void barrier() = 0;
  /// True on all ranks if `flag` is true on any.
  bool any(bool flag);

  // Device data, after all work on `stream`: NCCL enqueues there, MPI waits for it first. The order
  // of float sums depends only on the layout.
  virtual void all_reduce(float* data, std::size_t n, const DeviceStream& stream) = 0;
  virtual void all_reduce(double* data, std::size_t n, const DeviceStream& stream) = 0;
  /// `data` has size() parts of n elements; rank r gets the sum of part r, in place.
  virtual void reduce_scatter(float* data, std::size_t n, const DeviceStream& stream) = 0;
  virtual void reduce_scatter(double* data, std::size_t n, const DeviceStream& stream) = 0;
  /// `data` has size() parts of `bytes`; rank r's part r goes to all ranks, in place.
  virtual void all_gather(void* data, std::size_t bytes, const DeviceStream& stream) = 0;
  virtual void broadcast_device(void* data, std::size_t bytes, int root,
                                const DeviceStream& stream) = 0;
  /// bf16, fp16: on the host summed in float and rounded once; on a device as in NCCL (rounded at
  /// each partial sum).
  virtual void all_reduce(bf16* data, std::size_t n, const DeviceStream& stream) = 0;
  virtual void all_reduce(fp16* data, std::size_t n, const DeviceStream& stream) = 0;
  /// Exchange between pipeline stages: sends to one rank and receives from one, concurrently;
  /// nobody: omits that half. Not collective: the peer's call is the other half.
  struct Message {
    void* data = nullptr;
    std::size_t bytes = 0;
    int rank = nobody;
  };
  static constexpr int nobody = -1;
  /// Connects this rank with `ranks`, each of which names this rank as well, before the first
  /// exchange(). NCCL connects both directions together, which fails in an exchange() where one
  /// side only sends.
  virtual void connect(const std::vector<int>& ranks) = 0;
  virtual void exchange(const Message& sent, const Message& received,
                        const DeviceStream& stream) = 0;

  /// Exchange into `slots`, PartExchange::slots x `bytes` of an Arena, which outlives it. Null on all
  /// ranks unless the group has 2 to PartExchange::most_ranks, whose devices reach each other's
  /// memory. Collective.
  virtual std::unique_ptr<PartExchange> part_exchange(void* slots, std::size_t bytes) = 0;

  /// Group of the ranks with the same `color`, in the order of this group. `name`: for messages.
  /// Collective.
  virtual std::unique_ptr<Group> split(int color, const std::string& name) = 0;
};

/// Group of all ranks. In builds for GPUs creates the NCCL communicator: call after the device is set.
/// Collective.
std::unique_ptr<Group> world();
/// Single-rank group: collectives are no-ops.
std::unique_ptr<Group> single_rank_group();

}  // namespace tern::comm
