/// Early stop of a run: by a signal, or at the end of the Slurm job's time.
///
/// SIGTERM, SIGUSR1, SIGINT, SIGHUP (unless ignored, as under nohup) and SIGXCPU request a stop.
/// SIGPIPE is ignored, so that a run outlives the reader of its output, and SIGXFSZ, so that
/// exceeding the file size limit fails the write. Until there is something to save, a stop signal
/// ends the process at once with exit code 75; from then on it sets a flag that the training loop
/// reads between steps, where all ranks agree.
#pragma once
#include <string>

namespace tern::job {

/// Installs the handlers; first call in main(). A stop signal ends the process at once or, in a rank
/// that a launcher started, makes the call that waits for a file fail.
void watch_signals();
/// Call before MPI starts: stop signals are deferred, and interrupt no call.
void hold_signals();
/// Call once MPI has started: from here on a stop signal ends the process at once, as a deferred
/// one does now. `ranks`: of the job; the launcher also ends all ranks by a signal when one fails.
/// (A rank that exits inside MPI_Init can hang OpenMPI's launcher.)
void release_signals(int ranks);
/// Restores the default action of stop signals, for tasks with nothing to save.
void leave_signals();

/// From its construction on, stop signals only set the flag. Reads SLURM_JOB_END_TIME (Unix time).
class Interrupt {
 public:
  Interrupt();

  /// Whether a stop signal was received. Local.
  bool signalled() const;
  /// Seconds left of the job; infinity outside of Slurm. Local.
  double seconds_left() const;
  /// True after a stop signal, or with less than `margin_seconds` of the job left. Local.
  bool requested(double margin_seconds) const;
  /// Reason, for the log.
  std::string reason() const;

 private:
  double job_end_ = 0;  // Unix time; 0: unknown
};

}  // namespace tern::job
