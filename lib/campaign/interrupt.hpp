/// When a run should stop before its steps are done: SIGTERM, SIGUSR1 and SIGINT, or the end of the
/// Slurm job's time. Flags only; the training loop looks at them between steps and all ranks agree
/// there.
#pragma once
#include <string>

namespace tern::campaign {

/// Installs the handlers once, and reads SLURM_JOB_END_TIME (Unix seconds).
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// True once a signal came, or less than `margin` seconds of the job are left. Local.
  bool requested(double margin_seconds) const;
  /// Why, for the log.
  std::string reason() const;

 private:
  double job_end_ = 0;  // Unix seconds, 0 if unknown
};

}  // namespace tern::campaign
