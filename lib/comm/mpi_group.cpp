#include "comm/detail/mpi_group.hpp"

#include <algorithm>
#include <numeric>

#include "comm/detail/copy_exchange.hpp"
#include "comm/detail/mpi_check.hpp"

namespace tern::comm {
namespace detail {
namespace {

constexpr std::size_t largest_count = std::size_t{1} << 30;  // MPI counts are int
constexpr const char* before_mpi = "before MPI";             // which reads memory at once

MPI_Op mpi_op(Sum op) { return op == Sum::sum ? MPI_SUM : op == Sum::max ? MPI_MAX : MPI_MIN; }

/// Calls body(first, count) over [0, n) in chunks that fit an int.
template <class Body>
void in_parts(std::size_t n, Body body) {
  for (std::size_t first = 0; first < n; first += largest_count)
    body(first, static_cast<int>(std::min(largest_count, n - first)));
}

template <class T>
void sum_over_ranks(T* data, std::size_t n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  in_parts(n, [&](std::size_t first, int count) {
    check(MPI_Allreduce(MPI_IN_PLACE, data + first, count, type, op, comm), "MPI_Allreduce");
  });
}

/// One reduction per part, to its owner: in place, without a second buffer.
template <class T>
void scatter_sums(T* data, std::size_t n, MPI_Datatype type, int rank, int size, MPI_Comm comm) {
  for (int owner = 0; owner < size; ++owner)
    in_parts(n, [&](std::size_t first, int count) {
      T* part = data + owner * n + first;
      check(
          MPI_Reduce(rank == owner ? MPI_IN_PLACE : part, part, count, type, MPI_SUM, owner, comm),
          "MPI_Reduce");
    });
}

/// Ranks of `comm` in MPI_COMM_WORLD. Local.
std::vector<int> world_ranks(MPI_Comm comm, int size) {
  MPI_Group own, world;
  check(MPI_Comm_group(comm, &own), "MPI_Comm_group");
  check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  std::vector<int> here(static_cast<std::size_t>(size)), among_all(here);
  std::iota(here.begin(), here.end(), 0);
  check(MPI_Group_translate_ranks(own, size, here.data(), world, among_all.data()),
        "MPI_Group_translate_ranks");
  MPI_Group_free(&own);
  MPI_Group_free(&world);
  return among_all;
}

/// On the host: parts go when they are awaited.
class MessageExchange : public PartExchange {
 public:
  MessageExchange(Group& group, void* memory, std::size_t bytes)
      : group_(group), memory_(static_cast<char*>(memory)), bytes_(bytes) {}

  void send(std::size_t slot, const std::vector<Part>& parts, const DeviceStream&) override {
    parts_[slot] = parts;
  }
  void await(std::size_t slot, const DeviceStream& stream) override {
    char* const here = memory_ + slot * bytes_;
    const int ranks = group_.size(), own = group_.rank();
    for (int distance = 1; distance < ranks; ++distance) {
      const Part& to = part(slot, (own + distance) % ranks);
      const Part& from = part(slot, (own + ranks - distance) % ranks);
      group_.exchange({const_cast<void*>(to.data), to.bytes, to.rank},
                      {here + from.received_at, from.bytes, from.rank}, stream);
    }
  }
  void release(std::size_t, const DeviceStream&) override {}

 private:
  const Part& part(std::size_t slot, int rank) const {
    return *std::find_if(parts_[slot].begin(), parts_[slot].end(),
                         [&](const Part& p) { return p.rank == rank; });
  }

  Group& group_;
  char* memory_;
  std::size_t bytes_;  // of a slot
  std::vector<Part> parts_[slots];
};

int world_size() {
  int size = 1;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  return size;
}

}  // namespace

MpiGroup::MpiGroup(MPI_Comm comm, const std::string& name) : comm_(comm) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  members_ = std::make_shared<const std::string>(
      members_text(name, world_ranks(comm_, size_), size_ == world_size()));
}
MpiGroup::~MpiGroup() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&comm_);
}

void MpiGroup::all_reduce(double* values, std::size_t n, Sum op) {
  const Wait wait(operation("all_reduce", n * sizeof(double)));
  sum_over_ranks(values, n, MPI_DOUBLE, mpi_op(op), comm_);
}
void MpiGroup::all_reduce(std::int64_t* values, std::size_t n, Sum op) {
  const Wait wait(operation("all_reduce", n * sizeof(std::int64_t)));
  sum_over_ranks(values, n, MPI_INT64_T, mpi_op(op), comm_);
}
void MpiGroup::broadcast(void* bytes, std::size_t n, int root) {
  const Wait wait(operation("broadcast", n));
  in_parts(n, [&](std::size_t first, int count) {
    check(MPI_Bcast(static_cast<char*>(bytes) + first, count, MPI_BYTE, root, comm_), "MPI_Bcast");
  });
}
void MpiGroup::barrier() {
  const Wait wait(operation("barrier"));
  check(MPI_Barrier(comm_), "MPI_Barrier");
}

void MpiGroup::all_reduce(float* data, std::size_t n, const DeviceStream& stream) {
  if (size_ == 1) return;
  stream.fence(before_mpi);
  const Wait wait(operation("all_reduce", n * sizeof(float)));
  sum_over_ranks(data, n, MPI_FLOAT, MPI_SUM, comm_);
}
void MpiGroup::all_reduce(double* data, std::size_t n, const DeviceStream& stream) {
  if (size_ == 1) return;
  stream.fence(before_mpi);
  const Wait wait(operation("all_reduce", n * sizeof(double)));
  sum_over_ranks(data, n, MPI_DOUBLE, MPI_SUM, comm_);
}
void MpiGroup::reduce_scatter(float* data, std::size_t n, const DeviceStream& stream) {
  if (size_ == 1) return;
  stream.fence(before_mpi);
  const Wait wait(operation("reduce_scatter", n * sizeof(float)));
  scatter_sums(data, n, MPI_FLOAT, rank_, size_, comm_);
}
void MpiGroup::reduce_scatter(double* data, std::size_t n, const DeviceStream& stream) {
  if (size_ == 1) return;
  stream.fence(before_mpi);
  const Wait wait(operation("reduce_scatter", n * sizeof(double)));
  scatter_sums(data, n, MPI_DOUBLE, rank_, size_, comm_);
}
void MpiGroup::all_gather(void* data, std::size_t bytes, const DeviceStream& stream) {
  if (size_ == 1) return;
  stream.fence(before_mpi);
  const Wait wait(operation("all_gather", bytes));
  if (bytes <= largest_count) {
    check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, data, static_cast<int>(bytes), MPI_BYTE, comm_),
          "MPI_Allgather");
    return;
  }
  for (int owner = 0; owner < size_; ++owner)
    broadcast(static_cast<char*>(data) + owner * bytes, bytes, owner);
}
void MpiGroup::broadcast_device(void* data, std::size_t bytes, int root,
                                const DeviceStream& stream) {
  if (size_ == 1) return;  // device pointers must not reach MPI
  stream.fence(before_mpi);
  broadcast(data, bytes, root);
}

template <class T>
void MpiGroup::sum_halves(T* data, std::size_t n, const DeviceStream& stream) {
  if (size_ == 1) return;
  stream.fence(before_mpi);
  wide_.resize(n);
  std::transform(data, data + n, wide_.begin(), [](T x) { return static_cast<float>(x); });
  MpiGroup::all_reduce(wide_.data(), n, stream);
  std::transform(wide_.begin(), wide_.end(), data, [](float x) { return T(x); });
}
void MpiGroup::all_reduce(bf16* data, std::size_t n, const DeviceStream& stream) {
  sum_halves(data, n, stream);
}
void MpiGroup::all_reduce(fp16* data, std::size_t n, const DeviceStream& stream) {
  sum_halves(data, n, stream);
}

Operation MpiGroup::with_ranks(Operation operation, const Message& sent, const Message& received) {
  operation.to = sent.rank;
  operation.from = received.rank;
  return operation;
}

void MpiGroup::exchange(const Message& sent, const Message& received, const DeviceStream& stream) {
  stream.fence(before_mpi);
  const Wait wait(with_ranks(operation("exchange", sent.bytes + received.bytes), sent, received));
  std::vector<MPI_Request> requests;
  const auto all = [&](const Message& message, const auto& start) {
    if (message.rank == nobody) return;
    in_parts(message.bytes, [&](std::size_t first, int count) {
      requests.emplace_back();
      start(static_cast<char*>(message.data) + first, count, message.rank, &requests.back());
    });
  };
  all(received, [&](char* data, int count, int rank, MPI_Request* request) {
    check(MPI_Irecv(data, count, MPI_BYTE, rank, 0, comm_, request), "MPI_Irecv");
  });
  all(sent, [&](char* data, int count, int rank, MPI_Request* request) {
    check(MPI_Isend(data, count, MPI_BYTE, rank, 0, comm_, request), "MPI_Isend");
  });
  check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
        "MPI_Waitall");
}

std::unique_ptr<PartExchange> MpiGroup::part_exchange(void* slots, std::size_t bytes) {
  if (any(!exchange_serves(*this))) return nullptr;
  return std::make_unique<MessageExchange>(*this, slots, bytes);
}

MPI_Comm MpiGroup::part(int color) const {
  const Wait wait(operation("the split of a group"));
  MPI_Comm part;
  check(MPI_Comm_split(comm_, color, rank_, &part), "MPI_Comm_split");
  return part;
}

#if !defined(TERN_WITH_NCCL) && !defined(TERN_WITH_HIP)
std::unique_ptr<Group> make_group(MPI_Comm comm, const std::string& name) {
  return std::make_unique<MpiGroup>(comm, name);
}
#endif

}  // namespace detail

bool Group::any(bool flag) {
  std::int64_t value = flag ? 1 : 0;
  all_reduce(&value, 1, Sum::max);
  return value != 0;
}

std::unique_ptr<Group> world() {
  const detail::Wait wait({"the start of a group of all ranks"});
  MPI_Comm comm;
  detail::check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  return detail::make_group(comm, "world");
}

std::unique_ptr<Group> single_rank_group() {
  MPI_Comm comm;
  detail::check(MPI_Comm_dup(MPI_COMM_SELF, &comm), "MPI_Comm_dup");
  return std::make_unique<detail::MpiGroup>(comm, "single rank");
}

}  // namespace tern::comm
