/// Exit codes.
#pragma once

namespace tern::job {

/// Exit codes other than 1 (user error) and 70 (internal error).
enum ExitCode {
  finished = 0,
  not_saved = 74,    // the run ended, but its last or best checkpoint, an evaluation or lines of
                     // metrics.jsonl could not be written
  interrupted = 75,  // a signal or the job's time limit: checkpoint written, resume with --resume
  diverged = 76,     // too many consecutive steps with a non-finite loss or gradient, or a
                     // non-finite validation loss
  verdict_failed = 77,  // ended as planned, but the verdict is not good: do not start the next
                        // phase
};

}  // namespace tern::job
