/// When a run should stop before its steps are done: a signal, or the end of the Slurm job's time.
///
/// SIGTERM, SIGUSR1, SIGINT, SIGHUP (unless it is ignored, as under nohup) and SIGXCPU ask for a
/// stop; SIGPIPE is ignored, so that a run outlives the reader of its output, and SIGXFSZ, so that
/// a file that may not grow is an error of its write. Until there is something to save, such a
/// signal ends the process at once with exit code 75; from then on it sets a flag that the training
/// loop reads between steps, where all ranks agree.
#pragma once
#include <string>

namespace tern::job {

/// Installs the handlers: the first thing that main() does. Signals are held while MPI starts.
void watch_signals();
/// MPI has started: from here on a signal ends the process at once, as one that was held does here.
/// (A rank that ends within MPI's start can leave OpenMPI's launcher waiting for ever.)
void release_signals();
/// Gives the signals that ask for a stop back to the system, for a task that has nothing to save.
void leave_signals();

/// From its construction on, signals set the flag. Reads SLURM_JOB_END_TIME (Unix seconds).
class Interrupt {
 public:
  Interrupt();

  /// Whether a signal has come. Local.
  bool signalled() const;
  /// Seconds of the job that are left; infinity outside of Slurm. Local.
  double seconds_left() const;
  /// True once a signal came, or less than `margin` seconds of the job are left. Local.
  bool requested(double margin_seconds) const;
  /// Why, for the log.
  std::string reason() const;

 private:
  double job_end_ = 0;  // Unix seconds, 0 if unknown
};

}  // namespace tern::job
