// Device data over NCCL; host data stays with MPI. Compiled in CUDA builds only.
#if defined(TERN_WITH_CUDA)
#include <cuda_runtime.h>
#include <nccl.h>

#include <exception>

#include "comm/detail/mpi_check.hpp"
#include "comm/detail/mpi_group.hpp"

namespace tern::comm {
namespace detail {
namespace {

void nccl_check(ncclResult_t code, const char* what) {
  if (code == ncclSuccess) return;
  throw InternalError(fmt::format("{} failed: {} ({}); NCCL_DEBUG=INFO tells more", what,
                                  ncclGetErrorString(code), ncclGetLastError(nullptr)));
}

void cuda_check(cudaError_t code, const char* what) {
  if (code != cudaSuccess)
    throw InternalError(fmt::format("{} failed: {}", what, cudaGetErrorString(code)));
}

class NcclGroup : public MpiGroup {
 public:
  explicit NcclGroup(MPI_Comm comm) : MpiGroup(comm) {
    ncclUniqueId id{};
    if (rank() == 0) nccl_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    broadcast(&id, sizeof id, 0);
    nccl_check(ncclCommInitRank(&nccl_, size(), id, rank()), "ncclCommInitRank");
    owner_ = {nccl_, [](ncclComm_t owned) {
                // To destroy it waits for the other ranks, which may be waiting for this one.
                std::uncaught_exceptions() > 0 ? ncclCommAbort(owned) : ncclCommDestroy(owned);
              }};
  }
  /// The same ranks in the same order: a communicator of NCCL holds memory of the device, so one
  /// serves all such groups.
  NcclGroup(MPI_Comm comm, const NcclGroup& same)
      : MpiGroup(comm), owner_(same.owner_), nccl_(same.nccl_) {}

  std::unique_ptr<Group> split(int color) override {
    const MPI_Comm comm = part(color);
    int ranks = 0;
    check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    if (ranks == size()) return std::make_unique<NcclGroup>(comm, *this);
    return make_group(comm);
  }

  void all_reduce(float* data, std::size_t n, void* stream) override {
    sum(data, n, ncclFloat, stream);
  }
  void all_reduce(double* data, std::size_t n, void* stream) override {
    sum(data, n, ncclDouble, stream);
  }
  void reduce_scatter(float* data, std::size_t n, void* stream) override {
    scatter(data, data + rank() * n, n, ncclFloat, stream);
  }
  void reduce_scatter(double* data, std::size_t n, void* stream) override {
    scatter(data, data + rank() * n, n, ncclDouble, stream);
  }
  void all_gather(void* data, std::size_t bytes, void* stream) override {
    nccl_check(ncclAllGather(static_cast<char*>(data) + rank() * bytes, data, bytes, ncclInt8,
                             nccl_, static_cast<cudaStream_t>(stream)),
               "ncclAllGather");
  }
  void broadcast_device(void* data, std::size_t bytes, int root, void* stream) override {
    nccl_check(
        ncclBroadcast(data, data, bytes, ncclInt8, root, nccl_, static_cast<cudaStream_t>(stream)),
        "ncclBroadcast");
  }
  void all_reduce(bf16* data, std::size_t n, void* stream) override {
    sum(data, n, ncclBfloat16, stream);
  }
  void connect(const std::vector<int>& ranks) override {
    if (ranks.empty()) return;
    char* bytes = nullptr;  // one to send and one to receive for each
    cuda_check(cudaMalloc(&bytes, 2 * ranks.size()), "cudaMalloc");
    const std::unique_ptr<char, cudaError_t (*)(void*)> owner(bytes,
                                                              [](void* p) { return cudaFree(p); });
    nccl_check(ncclGroupStart(), "ncclGroupStart");
    for (const int rank : ranks) {
      nccl_check(ncclSend(bytes++, 1, ncclInt8, rank, nccl_, nullptr), "ncclSend");
      nccl_check(ncclRecv(bytes++, 1, ncclInt8, rank, nccl_, nullptr), "ncclRecv");
    }
    nccl_check(ncclGroupEnd(), "ncclGroupEnd");
    cuda_check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  void exchange(const Message& sent, const Message& received, void* stream) override {
    const auto on = static_cast<cudaStream_t>(stream);
    nccl_check(ncclGroupStart(), "ncclGroupStart");
    if (sent.rank != nobody)
      nccl_check(ncclSend(sent.data, sent.bytes, ncclInt8, sent.rank, nccl_, on), "ncclSend");
    if (received.rank != nobody)
      nccl_check(ncclRecv(received.data, received.bytes, ncclInt8, received.rank, nccl_, on),
                 "ncclRecv");
    nccl_check(ncclGroupEnd(), "ncclGroupEnd");
  }
  using MpiGroup::all_reduce;

 private:
  void sum(void* data, std::size_t n, ncclDataType_t type, void* stream) {
    nccl_check(
        ncclAllReduce(data, data, n, type, ncclSum, nccl_, static_cast<cudaStream_t>(stream)),
        "ncclAllReduce");
  }
  void scatter(void* data, void* own, std::size_t n, ncclDataType_t type, void* stream) {
    nccl_check(
        ncclReduceScatter(data, own, n, type, ncclSum, nccl_, static_cast<cudaStream_t>(stream)),
        "ncclReduceScatter");
  }
  std::shared_ptr<ncclComm> owner_;
  ncclComm_t nccl_ = nullptr;
};

}  // namespace

std::unique_ptr<Group> make_group(MPI_Comm comm) {
  int size = 1;
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  // One rank needs no NCCL: its collectives are the identity.
  if (size == 1) return std::make_unique<MpiGroup>(comm);
  return std::make_unique<NcclGroup>(comm);
}

}  // namespace detail
}  // namespace tern::comm
#endif
