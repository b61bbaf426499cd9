/// How a rank waits for others on cores that it shares with other processes.
///
/// MPI libraries wait by polling. On a shared core a rank that polls uses up its turns, and a message
/// then arrives only in the rank's next turn, after those of all other processes there: tens of
/// milliseconds instead of microseconds. A process that sleeps in short naps gets the core as soon as
/// it wakes. Between two polls OpenMPI calls sched_yield(), if asked to, and MPICH does by itself.
/// yield.cpp defines that function for the whole program: inside a Wait it naps where the core turns
/// out to be shared, and is libc's function everywhere else.
#pragma once
#include <chrono>

#include "comm/detail/wait.hpp"

namespace tern::comm::detail {

/// Decides whether a waiting rank polls, yields or naps. Not thread-safe.
class Patience {
 public:
  using Duration = Clock::duration;
  enum class Kind { poll, yield, nap };
  struct Pause {
    Kind kind;
    Duration length{};  // of a nap
  };
  /// What to do after a poll at `now` without success, in a wait since `entered`.
  Pause next(Clock::time_point entered, Clock::time_point now) const;
  /// The pause took this time, until `now`: much longer than asked for if another process had the
  /// core, which then counts as shared for `remembered` times as long.
  void took(const Pause& pause, Duration time, Clock::time_point now);

  static constexpr Duration brief = std::chrono::microseconds(20);     // of polling without a pause
  static constexpr Duration shortest = std::chrono::microseconds(20);  // nap
  static constexpr Duration longest = std::chrono::microseconds(250);
  static constexpr Duration turn = std::chrono::microseconds(500);  // of another process, at least
  static constexpr int remembered = 20;  // finding out again costs a twentieth

 private:
  Clock::time_point shared_until_{};
};

/// Called around each Wait of a thread. end_wait(): length of its outermost one, zero for others.
void begin_wait();
Clock::duration end_wait();

/// Asks OpenMPI to yield between polls, unless the user has decided. Before MPI starts.
void yield_while_waiting();

/// Calls of sched_yield() inside a Wait so far, in any thread.
long yields_while_waiting();

}  // namespace tern::comm::detail
