#include "job/interrupt.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <string_view>

#include "comm/prologue.hpp"
#include "job/exit_code.hpp"

namespace tern::job {
namespace {

volatile std::sig_atomic_t received = 0;
enum Answer { held, ends, saved };  // deferred; ends at once; left to the training loop
volatile std::sig_atomic_t answer = held;

constexpr std::array signals{SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGXCPU};

volatile std::sig_atomic_t several = 0;  // ranks
volatile std::sig_atomic_t prints = 1;   // true on rank 0, according to the launcher

/// Calls only async-signal-safe functions.
[[noreturn]] void end_now() {
  constexpr std::string_view alone =
      "stopped by a signal before the first step: nothing is lost; start again with --resume\n";
  constexpr std::string_view launched =
      "stopped by a signal before the first step: nothing is lost; unless another rank failed, "
      "start "
      "again with --resume\n";
  const std::string_view text = several ? launched : alone;
  [[maybe_unused]] const auto written =
      prints ? ::write(STDERR_FILENO, text.data(), text.size()) : 0;
  ::_exit(interrupted);
}

void on_signal(int number) {
  if (received == 0) received = number;
  if (answer == ends) end_now();
}

void set(int number, void (*handler)(int), int flags = SA_RESTART) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(number, &action, nullptr);
}

bool ignored(int number) {
  struct sigaction before {};
  return sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
}

void watch(int flags) {
  for (const int number : signals)
    if (number != SIGHUP || !ignored(SIGHUP)) set(number, on_signal, flags);
}

}  // namespace

void watch_signals() {
  prints = comm::launched_rank().value_or(0) == 0;
  answer = comm::launched_rank() ? held : ends;
  set(SIGPIPE, SIG_IGN);
  set(SIGXFSZ, SIG_IGN);  // write() fails instead
  watch(0);
}

void hold_signals() {
  answer = held;
  watch(SA_RESTART);
}

void release_signals(int ranks) {
  several = ranks > 1 ? 1 : 0;
  answer = ends;
  if (received != 0) end_now();
}

void leave_signals() {
  for (const int number : signals)
    if (!ignored(number)) set(number, SIG_DFL);
}

Interrupt::Interrupt() {
  answer = saved;
  if (const char* end = std::getenv("SLURM_JOB_END_TIME")) job_end_ = std::strtod(end, nullptr);
}

bool Interrupt::signalled() const { return received != 0; }

double Interrupt::seconds_left() const {
  if (job_end_ <= 0) return std::numeric_limits<double>::infinity();
  return job_end_ - static_cast<double>(std::time(nullptr));
}

bool Interrupt::requested(double margin_seconds) const {
  return signalled() || seconds_left() < margin_seconds;
}

std::string Interrupt::reason() const {
  if (received != 0)
    return fmt::format("signal {} (SIG{})", static_cast<int>(received), sigabbrev_np(received));
  if (job_end_ > 0) return "the end of the job's time";
  return "a signal to another rank";
}

}  // namespace tern::job
