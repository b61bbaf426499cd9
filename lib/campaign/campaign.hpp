/// A campaign from deck to exit code: what main() calls once MPI and Kokkos run.
#pragma once
#include <string>

#include "base/timer.hpp"
#include "comm/comm.hpp"
#include "deck/deck.hpp"

namespace tern::campaign {

struct Options {
  Timer clock;              // of the run's wall time, started by main()
  bool resume = false;      // go on from the newest checkpoint; a fresh run if there is none
  bool fresh = false;       // move an earlier run of the same directory aside and start anew
  bool dry_run = false;     // print the plan and end
  std::string device;       // the GPU that a dry run plans for; empty: what is here
  int ranks = 0;            // that a dry run plans for; 0: those that are here, or the deck's
  bool show_batch = false;  // print the first rows' tokens and end
  std::string export_to;    // write the weights as a Transformers directory there, and end
};

/// Exit codes beside 0, 1 (the user's mistake) and 70 (an internal error).
enum ExitCode {
  finished = 0,
  not_saved = 74,  // the run ended, but its last checkpoint could not be written
  interrupted =
      75,         // a signal or the job's time limit: checkpoint written, start again with --resume
  diverged = 76,  // too many steps in a row without a finite loss or gradient, or a validation loss
                  // that is not finite
  verdict_failed = 77,  // ended as planned, but its verdict is not good: the next phase should not
                        // start
};

/// Whether the task leaves its result in files: then standard output is a convenience.
bool leaves_files(const deck::Deck& deck, const Options& options);

/// Runs the deck's task on all ranks. Collective; returns the same code on every rank.
int run(const deck::Deck& deck, const Options& options, const comm::Session& session);

}  // namespace tern::campaign
