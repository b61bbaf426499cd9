#pragma once
#include <chrono>

namespace tern {

/// Seconds since construction or the last restart(); steady clock.
class Timer {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  /// Returns the elapsed seconds and restarts from zero.
  double restart() {
    const double elapsed = seconds();
    start_ = Clock::now();
    return elapsed;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tern
