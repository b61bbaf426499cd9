#include "comm/hosts.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/host.hpp"
#include "comm/detail/mpi_check.hpp"
#include "comm/detail/wait.hpp"

namespace tern::comm {
namespace {

constexpr std::size_t named = 4;

/// One rank's entry; as bytes in an all-gather.
struct Entry {
  std::array<char, 64> name{};  // cut
  int local_rank = 0, local_size = 1;
};

}  // namespace

std::string Hosts::text() const {
  const std::size_t shown = names.size() > named ? named - 1 : names.size();
  std::string text;
  for (std::size_t at = 0; at < shown; ++at) text += (at > 0 ? ", " : "") + names[at];
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

Hosts hosts() {
  Entry own;
  const std::string name = host_name();
  std::copy_n(name.begin(), std::min(name.size(), own.name.size() - 1), own.name.begin());
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<Entry> all(static_cast<std::size_t>(size));
  const detail::Wait wait({"the names of all hosts", all.size() * sizeof(Entry)});
  MPI_Comm here = MPI_COMM_NULL;
  detail::check(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here),
      "MPI_Comm_split_type");
  MPI_Comm_rank(here, &own.local_rank);
  MPI_Comm_size(here, &own.local_size);
  MPI_Comm_free(&here);
  detail::check(
      MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD),
      "MPI_Allgather");
  Hosts hosts;
  for (const Entry& one : all) {
    if (one.local_rank == 0) hosts.names.emplace_back(one.name.data());
    hosts.most = std::max(hosts.most, one.local_size);
  }
  return hosts;
}

}  // namespace tern::comm
