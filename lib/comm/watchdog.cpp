#include "comm/detail/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>

#include "base/error.hpp"
#include "base/host.hpp"
#include "comm/detail/abort.hpp"
#include "comm/detail/wait.hpp"
#include "comm/waits.hpp"

namespace tern::comm::detail {
namespace {

constexpr std::chrono::seconds grace(2);  // for every waiting rank to report
// Delay per rank, so that the lowest waiting rank ends all before the next one does.
constexpr std::chrono::seconds apart(3);

}  // namespace

Watchdog::Watchdog(double limit, int rank, int size)
    : limit_(limit), rank_(rank), size_(size), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  sigset_t all;  // the main thread handles signals
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  using Seconds = std::chrono::duration<double>;
  const Seconds interval(std::min(1.0, limit_ / 4));
  Clock::time_point last = Clock::now(), followed{};
  Seconds waited{};
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, interval, [this] { return stops_; })) {
    // Caps each turn, so that time in which the job was suspended does not count.
    const Seconds turn = std::min<Seconds>(Clock::now() - last, 2 * interval);
    last = Clock::now();
    const auto longest = longest_wait();
    if (!longest) continue;
    waited = longest->since == followed ? waited + turn : Seconds::zero();
    followed = longest->since;
    const bool within_long = within_long_wait();
    if (waited.count() > limit_ * (within_long ? long_wait_factor : 1))
      end_all(overdue_text(*longest, waited.count(), limit_, within_long));
  }
}

void Watchdog::end_all(const std::string& overdue) const {
  std::fputs(
      fmt::format("error: rank {} of {} on {} {}\n", rank_, size_, host_name(), overdue).c_str(),
      stderr);
  std::fflush(stderr);
  std::this_thread::sleep_for(grace + apart * std::min(rank_, 10));
  leave();
}

}  // namespace tern::comm::detail
