/// Command-line options that are not in the deck.
#pragma once
#include <string>

#include "base/timer.hpp"

namespace tern::job {

struct Options {
  Timer clock;              // wall time, started by main()
  bool resume = false;      // from the newest checkpoint; from scratch if there is none
  bool fresh = false;       // move an earlier run in the same directory aside first
  bool dry_run = false;     // print the plan and exit
  std::string device;       // GPU that a dry run plans for; empty: this rank's device
  int ranks = 0;            // ranks that a dry run plans for; 0: this job's, or the deck's
  bool show_batch = false;  // print the tokens of the first rows and exit
  std::string export_to;    // write the weights as a Transformers directory there and exit
};

}  // namespace tern::job
