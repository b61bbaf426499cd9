#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "comm/detail/yield.hpp"

namespace tern::comm::detail {
namespace {

// Depth and begin of this thread's outermost Wait.
thread_local int depth = 0;
thread_local Clock::time_point began;
thread_local Patience patience;

void nap(Patience::Duration length) {
  // The kernel may otherwise wake the thread 50 us late.
  thread_local const int punctual = ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  static_cast<void>(punctual);
  std::this_thread::sleep_for(length);
}

std::atomic<long> yields = 0;

}  // namespace

Patience::Pause Patience::next(Clock::time_point entered, Clock::time_point now) const {
  const Duration waited = now - entered;
  if (waited < brief) return {Kind::poll};
  if (now >= shared_until_) return {Kind::yield};
  return {Kind::nap, std::clamp(waited / 4, shortest, longest)};
}

void Patience::took(const Pause& pause, Duration time, Clock::time_point now) {
  const Duration lost = time - pause.length;
  if (lost > turn) shared_until_ = std::max(shared_until_, now + remembered * lost);
}

void begin_wait() {
  if (depth++ == 0) began = Clock::now();
}
Clock::duration end_wait() { return --depth == 0 ? Clock::now() - began : Clock::duration::zero(); }

void yield_while_waiting() { ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0); }

long yields_while_waiting() { return yields; }

}  // namespace tern::comm::detail

/// In place of libc's function, also for libraries.
extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
  using namespace tern::comm::detail;
  if (depth == 0) return static_cast<int>(::syscall(SYS_sched_yield));
  yields.fetch_add(1, std::memory_order_relaxed);
  const auto begin = Clock::now();
  const Patience::Pause pause = patience.next(began, begin);
  if (pause.kind == Patience::Kind::poll) return 0;
  if (pause.kind == Patience::Kind::yield)
    ::syscall(SYS_sched_yield);
  else
    nap(pause.length);
  const auto end = Clock::now();
  patience.took(pause, end - begin, end);
  return 0;
}
