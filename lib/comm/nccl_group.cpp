// Device data over NCCL or over RCCL, which has its names; host data over MPI.
#if defined(TERN_WITH_NCCL)
#if defined(TERN_WITH_CUDA)
#include <nccl.h>
#else
#include <rccl/rccl.h>
#endif

#include <exception>

#include "comm/detail/copy_exchange.hpp"
#include "comm/detail/device_work.hpp"
#include "comm/detail/mpi_check.hpp"
#include "comm/detail/mpi_group.hpp"
#include "comm/gpu.hpp"

namespace tern::comm {
namespace detail {
namespace {

#if defined(TERN_WITH_CUDA)
using Queue = cudaStream_t;
#else
using Queue = hipStream_t;
#endif

void nccl_check(ncclResult_t code, const char* what) {
  if (code == ncclSuccess) return;
  throw InternalError(fmt::format("{} failed: {} ({}); set NCCL_DEBUG=INFO for details", what,
                                  ncclGetErrorString(code), ncclGetLastError(nullptr)));
}

/// Destroys the communicator, which waits for the other ranks; aborts it during stack unwinding,
/// when they may be waiting for this rank.
void end_communicator(ncclComm_t owned) {
  std::uncaught_exceptions() > 0 ? ncclCommAbort(owned) : ncclCommDestroy(owned);
}

class NcclGroup : public MpiGroup {
 public:
  NcclGroup(MPI_Comm comm, const std::string& name) : MpiGroup(comm, name) {
    ncclUniqueId id{};
    if (rank() == 0) nccl_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    broadcast(&id, sizeof id, 0);
    {
      const Wait wait(operation("NCCL initialization"));
      nccl_check(ncclCommInitRank(&nccl_, size(), id, rank()), "ncclCommInitRank");
    }
    owner_ = {nccl_, [end = operation("NCCL shutdown")](ncclComm_t owned) {
                const Wait wait(end);
                end_communicator(owned);
              }};
    work_ = std::make_shared<DeviceWork>();
  }
  /// Group with the same ranks in the same order: shares the NCCL communicator, since each takes
  /// device memory.
  NcclGroup(MPI_Comm comm, const std::string& name, const NcclGroup& same)
      : MpiGroup(comm, name), owner_(same.owner_), work_(same.work_), nccl_(same.nccl_) {}

  std::unique_ptr<Group> split(int color, const std::string& name) override {
    const MPI_Comm comm = part(color);
    int ranks = 0;
    check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    if (ranks == size()) return std::make_unique<NcclGroup>(comm, name, *this);
    return make_group(comm, name);
  }

  void all_reduce(float* data, std::size_t n, const DeviceStream& stream) override {
    sum(data, n, ncclFloat, stream);
  }
  void all_reduce(double* data, std::size_t n, const DeviceStream& stream) override {
    sum(data, n, ncclDouble, stream);
  }
  void reduce_scatter(float* data, std::size_t n, const DeviceStream& stream) override {
    scatter(data, data + rank() * n, n, ncclFloat, stream);
  }
  void reduce_scatter(double* data, std::size_t n, const DeviceStream& stream) override {
    scatter(data, data + rank() * n, n, ncclDouble, stream);
  }
  void all_gather(void* data, std::size_t bytes, const DeviceStream& stream) override {
    nccl_check(ncclAllGather(static_cast<char*>(data) + rank() * bytes, data, bytes, ncclInt8,
                             nccl_, queue(stream)),
               "ncclAllGather");
    work_->follow(operation("all_gather", bytes), stream.handle());
  }
  void broadcast_device(void* data, std::size_t bytes, int root,
                        const DeviceStream& stream) override {
    nccl_check(ncclBroadcast(data, data, bytes, ncclInt8, root, nccl_, queue(stream)),
               "ncclBroadcast");
    work_->follow(operation("broadcast", bytes), stream.handle());
  }
  void all_reduce(bf16* data, std::size_t n, const DeviceStream& stream) override {
    sum(data, n, ncclBfloat16, stream);
  }
  void all_reduce(fp16* data, std::size_t n, const DeviceStream& stream) override {
    sum(data, n, ncclFloat16, stream);
  }
  void connect(const std::vector<int>& ranks) override {
    if (ranks.empty()) return;
    const auto owner = gpu::allocate(2 * ranks.size());
    char* bytes = static_cast<char*>(owner.get());  // one to send and one to receive per rank
    nccl_check(ncclGroupStart(), "ncclGroupStart");
    for (const int rank : ranks) {
      nccl_check(ncclSend(bytes++, 1, ncclInt8, rank, nccl_, nullptr), "ncclSend");
      nccl_check(ncclRecv(bytes++, 1, ncclInt8, rank, nccl_, nullptr), "ncclRecv");
    }
    const Wait wait(operation("opening the connections"));
    nccl_check(ncclGroupEnd(), "ncclGroupEnd");
    gpu::synchronize(nullptr);
  }
  void exchange(const Message& sent, const Message& received, const DeviceStream& stream) override {
    const auto on = queue(stream);
    nccl_check(ncclGroupStart(), "ncclGroupStart");
    if (sent.rank != nobody)
      nccl_check(ncclSend(sent.data, sent.bytes, ncclInt8, sent.rank, nccl_, on), "ncclSend");
    if (received.rank != nobody)
      nccl_check(ncclRecv(received.data, received.bytes, ncclInt8, received.rank, nccl_, on),
                 "ncclRecv");
    nccl_check(ncclGroupEnd(), "ncclGroupEnd");
    work_->follow(with_ranks(operation("exchange", sent.bytes + received.bytes), sent, received),
                  stream.handle());
  }
  std::unique_ptr<PartExchange> part_exchange(void* slots, std::size_t bytes) override {
    return copy_exchange(*this, operation("exchange of parts", bytes), slots, bytes);
  }
  using MpiGroup::all_reduce;

 private:
  static Queue queue(const DeviceStream& stream) { return static_cast<Queue>(stream.handle()); }
  static std::size_t bytes_of(ncclDataType_t type) {
    if (type == ncclBfloat16 || type == ncclFloat16) return sizeof(bf16);
    return type == ncclFloat ? sizeof(float) : sizeof(double);
  }
  void sum(void* data, std::size_t n, ncclDataType_t type, const DeviceStream& stream) {
    nccl_check(ncclAllReduce(data, data, n, type, ncclSum, nccl_, queue(stream)), "ncclAllReduce");
    work_->follow(operation("all_reduce", n * bytes_of(type)), stream.handle());
  }
  void scatter(void* data, void* own, std::size_t n, ncclDataType_t type,
               const DeviceStream& stream) {
    nccl_check(ncclReduceScatter(data, own, n, type, ncclSum, nccl_, queue(stream)),
               "ncclReduceScatter");
    work_->follow(operation("reduce_scatter", n * bytes_of(type)), stream.handle());
  }
  std::shared_ptr<ncclComm> owner_;
  std::shared_ptr<DeviceWork> work_;  // shared by all groups of the communicator
  ncclComm_t nccl_ = nullptr;
};

}  // namespace

std::unique_ptr<Group> make_group(MPI_Comm comm, const std::string& name) {
  int size = 1;
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  // A single rank needs no NCCL: its collectives are no-ops.
  if (size == 1) return std::make_unique<MpiGroup>(comm, name);
  return std::make_unique<NcclGroup>(comm, name);
}

}  // namespace detail
}  // namespace tern::comm
#endif
