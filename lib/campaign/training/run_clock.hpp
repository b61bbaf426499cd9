/// Wall time and energy of a run over all its starts.
#pragma once
#include "base/timer.hpp"
#include "campaign/training/state.hpp"
#include "comm/comm.hpp"
#include "profile/device_usage.hpp"

namespace tern::campaign {

class RunClock {
 public:
  /// `start`: the beginning of this start of the run.
  explicit RunClock(Timer start) : start_(start) {}

  /// Adds the time and energy of earlier starts.
  void resume(const TrainState& state) {
    earlier_seconds_ = state.seconds;
    earlier_joules_ = state.joules;
  }
  double seconds() const { return earlier_seconds_ + start_.seconds(); }
  double of_this_start() const { return start_.seconds(); }

  /// Updates wall time and energy of the state. Collective.
  void account(TrainState& state, profile::DeviceMeter& meter, comm::Group& world) const {
    state.seconds = seconds();
    double joules = meter.read().energy_joules.value_or(0);
    world.all_reduce(&joules, 1, comm::Sum::sum);
    state.joules = earlier_joules_ + joules;
  }

 private:
  Timer start_;
  double earlier_seconds_ = 0, earlier_joules_ = 0;
};

}  // namespace tern::campaign
