#include "comm/detail/staged_group.hpp"

#include "comm/gpu.hpp"

namespace tern::comm::detail {
namespace {

/// Stream of data on the host, where nothing is pending: gpu::copy waits.
class NoStream : public DeviceStream {
 public:
  void* handle() const override { return nullptr; }
  void fence(const char*) const override {}
};

}  // namespace

char* StagedGroup::staging(std::size_t bytes) {
  if (staging_.size() < bytes) staging_.resize(bytes);
  return staging_.data();
}

template <class T>
void StagedGroup::staged_sum(T* data, std::size_t n, const DeviceStream& stream) {
  if (size() == 1) return;
  auto* host = reinterpret_cast<T*>(staging(n * sizeof(T)));
  gpu::copy(host, data, n * sizeof(T), stream.handle());
  MpiGroup::all_reduce(host, n, NoStream());
  gpu::copy(data, host, n * sizeof(T), stream.handle());
}
void StagedGroup::all_reduce(float* data, std::size_t n, const DeviceStream& stream) {
  staged_sum(data, n, stream);
}
void StagedGroup::all_reduce(double* data, std::size_t n, const DeviceStream& stream) {
  staged_sum(data, n, stream);
}
void StagedGroup::all_reduce(bf16* data, std::size_t n, const DeviceStream& stream) {
  staged_sum(data, n, stream);
}
void StagedGroup::all_reduce(fp16* data, std::size_t n, const DeviceStream& stream) {
  staged_sum(data, n, stream);
}

template <class T>
void StagedGroup::staged_scatter(T* data, std::size_t n, const DeviceStream& stream) {
  if (size() == 1) return;
  const std::size_t own = static_cast<std::size_t>(rank()) * n;
  const std::size_t all = static_cast<std::size_t>(size()) * n;
  auto* host = reinterpret_cast<T*>(staging(all * sizeof(T)));
  gpu::copy(host, data, all * sizeof(T), stream.handle());
  MpiGroup::reduce_scatter(host, n, NoStream());
  gpu::copy(data + own, host + own, n * sizeof(T), stream.handle());
}
void StagedGroup::reduce_scatter(float* data, std::size_t n, const DeviceStream& stream) {
  staged_scatter(data, n, stream);
}
void StagedGroup::reduce_scatter(double* data, std::size_t n, const DeviceStream& stream) {
  staged_scatter(data, n, stream);
}

void StagedGroup::all_gather(void* data, std::size_t bytes, const DeviceStream& stream) {
  if (size() == 1) return;
  const std::size_t own = static_cast<std::size_t>(rank()) * bytes;
  const std::size_t all = static_cast<std::size_t>(size()) * bytes;
  char* host = staging(all);
  gpu::copy(host + own, static_cast<char*>(data) + own, bytes, stream.handle());
  MpiGroup::all_gather(host, bytes, NoStream());
  gpu::copy(data, host, all, stream.handle());
}

void StagedGroup::broadcast_device(void* data, std::size_t bytes, int root,
                                   const DeviceStream& stream) {
  if (size() == 1) return;
  char* host = staging(bytes);
  if (rank() == root) gpu::copy(host, data, bytes, stream.handle());
  broadcast(host, bytes, root);
  if (rank() != root) gpu::copy(data, host, bytes, stream.handle());
}

void StagedGroup::exchange(const Message& sent, const Message& received,
                           const DeviceStream& stream) {
  const std::size_t out = sent.rank == nobody ? 0 : sent.bytes;
  const std::size_t in = received.rank == nobody ? 0 : received.bytes;
  char* host = staging(out + in);
  if (out > 0) gpu::copy(host, sent.data, out, stream.handle());
  MpiGroup::exchange({host, out, sent.rank}, {host + out, in, received.rank}, NoStream());
  if (in > 0) gpu::copy(received.data, host + out, in, stream.handle());
}

#if defined(TERN_WITH_HIP) && !defined(TERN_WITH_NCCL)
std::unique_ptr<Group> make_group(MPI_Comm comm, const std::string& name) {
  return std::make_unique<StagedGroup>(comm, name);
}
#endif

}  // namespace tern::comm::detail
