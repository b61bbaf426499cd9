#include "comm/detail/mpi_group.hpp"

#include <algorithm>

#include "comm/detail/mpi_check.hpp"

namespace tern::comm {
namespace detail {
namespace {

constexpr std::size_t largest_count = std::size_t{1} << 30;  // MPI counts are int

MPI_Op operation(Sum op) { return op == Sum::sum ? MPI_SUM : op == Sum::max ? MPI_MAX : MPI_MIN; }

/// Calls body(first, count) over [0, n) in parts that fit an int.
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

/// One reduction a part, each to its owner: in place, without a second buffer.
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

}  // namespace

MpiGroup::MpiGroup(MPI_Comm comm) : comm_(comm) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}
MpiGroup::~MpiGroup() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Comm_free(&comm_);
}

void MpiGroup::all_reduce(double* values, std::size_t n, Sum op) {
  sum_over_ranks(values, n, MPI_DOUBLE, operation(op), comm_);
}
void MpiGroup::all_reduce(std::int64_t* values, std::size_t n, Sum op) {
  sum_over_ranks(values, n, MPI_INT64_T, operation(op), comm_);
}
void MpiGroup::broadcast(void* bytes, std::size_t n, int root) {
  in_parts(n, [&](std::size_t first, int count) {
    check(MPI_Bcast(static_cast<char*>(bytes) + first, count, MPI_BYTE, root, comm_), "MPI_Bcast");
  });
}
void MpiGroup::barrier() { check(MPI_Barrier(comm_), "MPI_Barrier"); }

void MpiGroup::all_reduce(float* data, std::size_t n, void*) {
  if (size_ == 1) return;
  sum_over_ranks(data, n, MPI_FLOAT, MPI_SUM, comm_);
}
void MpiGroup::all_reduce(double* data, std::size_t n, void*) {
  if (size_ == 1) return;
  sum_over_ranks(data, n, MPI_DOUBLE, MPI_SUM, comm_);
}
void MpiGroup::reduce_scatter(float* data, std::size_t n, void*) {
  if (size_ == 1) return;
  scatter_sums(data, n, MPI_FLOAT, rank_, size_, comm_);
}
void MpiGroup::reduce_scatter(double* data, std::size_t n, void*) {
  if (size_ == 1) return;
  scatter_sums(data, n, MPI_DOUBLE, rank_, size_, comm_);
}
void MpiGroup::all_gather(void* data, std::size_t bytes, void*) {
  if (size_ == 1) return;
  if (bytes <= largest_count) {
    check(MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, data, static_cast<int>(bytes), MPI_BYTE, comm_),
          "MPI_Allgather");
    return;
  }
  for (int owner = 0; owner < size_; ++owner)
    broadcast(static_cast<char*>(data) + owner * bytes, bytes, owner);
}
void MpiGroup::broadcast_device(void* data, std::size_t bytes, int root, void*) {
  if (size_ == 1) return;  // device pointers must not reach MPI in a CUDA build
  broadcast(data, bytes, root);
}

void MpiGroup::all_reduce(bf16* data, std::size_t n, void* stream) {
  if (size_ == 1) return;
  wide_.resize(n);
  std::transform(data, data + n, wide_.begin(), [](bf16 x) { return static_cast<float>(x); });
  MpiGroup::all_reduce(wide_.data(), n, stream);
  std::transform(wide_.begin(), wide_.end(), data, [](float x) { return bf16(x); });
}

void MpiGroup::exchange(const Message& sent, const Message& received, void*) {
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

MPI_Comm MpiGroup::part(int color) const {
  MPI_Comm part;
  check(MPI_Comm_split(comm_, color, rank_, &part), "MPI_Comm_split");
  return part;
}

#if !defined(TERN_WITH_CUDA)
std::unique_ptr<Group> make_group(MPI_Comm comm) { return std::make_unique<MpiGroup>(comm); }
#endif

}  // namespace detail

bool Group::any(bool flag) {
  std::int64_t value = flag ? 1 : 0;
  all_reduce(&value, 1, Sum::max);
  return value != 0;
}

std::unique_ptr<Group> world() {
  MPI_Comm comm;
  detail::check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  return detail::make_group(comm);
}

std::unique_ptr<Group> alone() {
  MPI_Comm comm;
  detail::check(MPI_Comm_dup(MPI_COMM_SELF, &comm), "MPI_Comm_dup");
  return std::make_unique<detail::MpiGroup>(comm);
}

}  // namespace tern::comm
