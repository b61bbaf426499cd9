/// The mesh of ranks and its collectives. MPI starts, agrees and carries host data; NCCL carries
/// device data in CUDA builds. One rank drives one device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace tern::comm {

enum class Sum { sum, max, min };

/// Started once by main(), before Kokkos. Reads the Slurm/OpenMPI environment through MPI.
class Session {
 public:
  Session(int* argc, char*** argv);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  int rank() const;
  int size() const;
  /// Number among the ranks that share this host's memory.
  int local_rank() const;
  int local_size() const;
  /// Number of the device to take, among those that this rank can see. UserError if there is none,
  /// or if two ranks would take the same. Collective over the ranks of a node.
  int device() const;

 private:
  /// `own` of each rank of this node, all of one length, by local rank. Collective over them.
  std::vector<std::string> of_local_ranks(const std::string& own) const;
};

/// Runs `body` and returns its exit code. An exception on any rank prints one message (the lowest
/// failing rank's) and ends all ranks with code 1 (UserError) or 70 (anything else); never a hang.
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

  // Data in the memory of the device, ordered behind `stream` (a cudaStream_t; ignored on the host,
  // where the caller has fenced). Sums of float are made in an order that depends on the layout
  // only.
  virtual void all_reduce(float* data, std::size_t n, void* stream) = 0;
  virtual void all_reduce(double* data, std::size_t n, void* stream) = 0;
  /// `data` has size() equal parts of n; rank r's part of the sum goes to its own part, in place.
  virtual void reduce_scatter(float* data, std::size_t n, void* stream) = 0;
  virtual void reduce_scatter(double* data, std::size_t n, void* stream) = 0;
  /// `data` has size() equal parts of `bytes`; rank r's part is sent to all, in place.
  virtual void all_gather(void* data, std::size_t bytes, void* stream) = 0;
  virtual void broadcast_device(void* data, std::size_t bytes, int root, void* stream) = 0;
  /// bf16: summed in float and rounded once on the host; as NCCL does it (rounded where ranks meet)
  /// on a device.
  virtual void all_reduce(bf16* data, std::size_t n, void* stream) = 0;
  /// What pipeline stages do: sends to one rank and receives from one, at once; nobody: that half
  /// is left out. Not collective: the other half is the other rank's call.
  struct Message {
    void* data = nullptr;
    std::size_t bytes = 0;
    int rank = nobody;
  };
  static constexpr int nobody = -1;
  /// Opens the ways between this rank and `ranks`, before the first exchange() with them. Each of
  /// them names this rank too. NCCL opens both directions of a way together: left to the first
  /// exchange(), in which one side may only send, it fails.
  virtual void connect(const std::vector<int>& ranks) = 0;
  virtual void exchange(const Message& sent, const Message& received, void* stream) = 0;

  /// The ranks that gave the same `color`, in the order they have here. `name`: what they are
  /// called in messages. Collective.
  virtual std::unique_ptr<Group> split(int color, const std::string& name) = 0;
};

/// All ranks as one group. In CUDA builds the NCCL communicator is made here (after the device is
/// set).
std::unique_ptr<Group> world();
/// One rank alone: every collective is a no-op.
std::unique_ptr<Group> alone();

}  // namespace tern::comm
