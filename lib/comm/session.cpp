#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"
#include "comm/comm.hpp"
#include "comm/detail/abort.hpp"
#include "comm/detail/mpi_check.hpp"
#include "comm/detail/wait.hpp"
#include "comm/detail/watchdog.hpp"
#include "comm/detail/yield.hpp"
#include "comm/waits.hpp"

namespace tern::comm {
namespace {

MPI_Comm failure_comm = MPI_COMM_NULL;  // barrier of failed ranks only
MPI_Comm host_comm = MPI_COMM_NULL;     // ranks that share this host's memory
// Watches this rank's waits, if limited. Deleted by ~Session, not at exit(), which MPI_Abort may
// call in its own thread.
detail::Watchdog* watchdog = nullptr;

int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  return size;
}

/// Limits are counted in naps: a busy machine, which makes ranks late, makes these longer too.
constexpr std::chrono::milliseconds nap(5);

/// True if every rank has failed: then all can exit normally. Waits two seconds on an idle machine.
bool all_failed() {
  MPI_Request request;
  if (MPI_Ibarrier(failure_comm, &request) != MPI_SUCCESS) return false;
  for (auto waited = nap; waited < std::chrono::seconds(2); waited += nap) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return true;
    std::this_thread::sleep_for(nap);
  }
  return false;
}

/// The exit code: that of a user's error also if the system refused a file.
int code_of(const std::exception& e) {
  const bool theirs = dynamic_cast<const UserError*>(&e) || dynamic_cast<const FileError*>(&e) ||
                      dynamic_cast<const std::filesystem::filesystem_error*>(&e);
  return theirs ? 1 : 70;
}

int end_all(int code, const std::string& what) {
  const std::string text = printable(what);
  const int rank = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
  const std::string message =
      size > 1 ? fmt::format("error: rank {}: {}\n", rank, text) : fmt::format("error: {}\n", text);
  if (size == 1 || all_failed()) {
    if (rank == 0)
      std::fputs(size == 1 ? message.c_str() : fmt::format("error: {}\n", text).c_str(), stderr);
    return code;
  }
  // Other ranks are still running, perhaps waiting for this one: the lowest failing rank reports
  // and aborts all.
  for (int naps = 40 * std::min(rank, 10); naps > 0; --naps) std::this_thread::sleep_for(nap);
  std::fputs(message.c_str(), stderr);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, code);
  return code;
}

}  // namespace

Session::Session(int* argc, char*** argv) {
  // A rank that exits inside a call of PMIx's shared-memory store leaves its lock held, and the
  // launcher hangs on it (OpenMPI 4.1 with PMIx 4.2). The hash store takes no lock.
  ::setenv("PMIX_MCA_gds", "hash", 0);
  detail::yield_while_waiting();
  int provided = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &failure_comm);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_in(MPI_COMM_WORLD), MPI_INFO_NULL,
                      &host_comm);
  detail::catch_aborts(rank(), size());
}

Session::~Session() {
  {
    const detail::Wait wait({"MPI shutdown"});
    // Waits here, not in MPI_Finalize: a rank that ends while others are in MPI_Finalize may make
    // OpenMPI's launcher hang or crash (4.1 with PMIx 4.2, whose server then uses a freed object).
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&host_comm);
    MPI_Comm_free(&failure_comm);
    MPI_Finalize();
  }
  delete std::exchange(watchdog, nullptr);
}

void limit_waits(double minutes) {
  const int size = size_of(MPI_COMM_WORLD);
  delete std::exchange(watchdog, nullptr);
  if (size > 1 && minutes > 0)
    watchdog = new detail::Watchdog(60 * minutes, rank_in(MPI_COMM_WORLD), size);
}

int Session::rank() const { return rank_in(MPI_COMM_WORLD); }
int Session::size() const { return size_of(MPI_COMM_WORLD); }
int Session::local_rank() const { return rank_in(host_comm); }
int Session::local_size() const { return size_of(host_comm); }

std::vector<std::string> Session::of_local_ranks(const std::string& own) const {
  const auto length = static_cast<int>(own.size());
  std::string all(own.size() * static_cast<std::size_t>(local_size()), ' ');
  const detail::Wait wait({"all_gather among the ranks of this host", all.size()});
  MPI_Allgather(own.data(), length, MPI_CHAR, all.data(), length, MPI_CHAR, host_comm);
  std::vector<std::string> each;
  for (std::size_t at = 0; at < all.size(); at += own.size())
    each.push_back(all.substr(at, own.size()));
  return each;
}

int run_ranks(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    return end_all(code_of(e), e.what());
  }
}

}  // namespace tern::comm
