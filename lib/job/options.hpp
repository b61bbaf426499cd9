/// How a program was started, as far as it is not in the deck.
#pragma once
#include <string>

#include "base/timer.hpp"

namespace tern::job {

struct Options {
  Timer clock;              // of the run's wall time, started by main()
  bool resume = false;      // from the newest checkpoint; a fresh run if there is none
  bool fresh = false;       // move an earlier run in the same directory aside first
  bool dry_run = false;     // print the plan and end
  std::string device;       // the GPU that a dry run plans for; empty: this rank's device
  int ranks = 0;            // that a dry run plans for; 0: those that are here, or the deck's
  bool show_batch = false;  // print the first rows' tokens and end
  std::string export_to;    // write the weights as a Transformers directory there, and end
};

}  // namespace tern::job
