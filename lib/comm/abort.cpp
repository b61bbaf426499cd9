#include "comm/detail/abort.hpp"

#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/host.hpp"

namespace tern::comm::detail {
namespace {

constexpr unsigned abort_seconds = 20;
constexpr int exit_code = 70;  // an internal error
std::string farewell;          // made before the signal, whose handler must not allocate
bool alone = false;            // one rank

void on_abort(int) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, farewell.data(), farewell.size());
  leave();
}

}  // namespace

void leave() {
  // OpenMPI's launcher may hang if a rank aborts while others finalize MPI; it notices a rank that
  // just exits, and ends the others.
  if (alone || std::getenv("OMPI_COMM_WORLD_RANK")) std::_Exit(exit_code);
  // The main thread may be inside MPI, which may block MPI_Abort: then SIGALRM ends this rank, and the
  // launcher ends the others.
  std::signal(SIGALRM, SIG_DFL);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(abort_seconds);
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

void catch_aborts(int rank, int size) {
  alone = size == 1;
  const std::string who =
      alone ? "this run" : fmt::format("rank {} of {} on {}", rank, size, host_name());
  farewell = "error: " + who + " was stopped by the failure above\n";
  struct sigaction action {};
  action.sa_handler = on_abort;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGABRT, &action, nullptr);
}

}  // namespace tern::comm::detail
