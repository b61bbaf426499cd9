/// What the exit code of a program says.
#pragma once

namespace tern::job {

/// Exit codes other than 1 (the user's mistake) and 70 (an internal error).
enum ExitCode {
  finished = 0,
  not_saved = 74,    // the run ended, but its last checkpoint could not be written
  interrupted = 75,  // a signal or the job's time limit: checkpoint written, resume with --resume
  diverged = 76,     // too many steps in a row without a finite loss or gradient, or a validation
                     // loss that is not finite
  verdict_failed = 77,  // ended as planned, but its verdict is not good: the next phase should not
                        // start
};

}  // namespace tern::job
