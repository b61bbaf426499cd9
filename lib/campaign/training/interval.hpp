/// Steps of one rank between two lines of the log.
#pragma once
#include "campaign/training/step.hpp"
#include "profile/device_usage.hpp"
#include "report/rank_usage.hpp"

namespace tern::campaign {

class Interval {
 public:
  void add(double seconds, const StepResult& step) {
    seconds_ += seconds;
    waited_ += step.wait_seconds;
    counts_ += step.counts;
  }
  /// Rows of the steps, on all ranks.
  const data::Counts& counts() const { return counts_; }

  /// Time of this rank. `now`: seconds of this start; cores are those in use since the last call.
  report::RankInterval of_rank(double now, const profile::DeviceUsage& usage) {
    report::RankInterval mine;
    mine.wall = seconds_;
    mine.waited = waited_;
    mine.usage = usage;
    const double cpu = usage.process.cpu_seconds;
    if (now > logged_at_) mine.cores = (cpu - logged_cpu_seconds_) / (now - logged_at_);
    logged_at_ = now;
    logged_cpu_seconds_ = cpu;
    return mine;
  }
  void restart() {
    seconds_ = waited_ = 0;
    counts_ = {};
  }

 private:
  double seconds_ = 0, waited_ = 0;  // in steps; of these, for data
  data::Counts counts_;
  double logged_at_ = 0, logged_cpu_seconds_ = 0;  // at the last call of of_rank()
};

}  // namespace tern::campaign
