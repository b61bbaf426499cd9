/// Command-line options that are not in the deck.
#pragma once
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/timer.hpp"

namespace tern::job {

struct Options {
  Timer clock;                // wall time, started by main()
  bool resume = false;        // from the newest checkpoint; from scratch if there is none
  bool fresh = false;         // move an earlier run in the same directory aside first
  bool dry_run = false;       // print the plan and exit
  bool without_data = false;  // dry run: data, tokenizer and weights are not opened
  std::string device;         // GPU that a dry run plans for; empty: this rank's device
  int ranks = 0;              // ranks that a dry run plans for; 0: this job's, or the deck's
  int ranks_per_node = 0;     // of a plan; 0: those of this job's hosts
  double network = 0;  // Gbit/s per rank between nodes that a plan assumes; 0: the device's usual
  bool show_batch = false;         // print the tokens of the first rows and exit
  std::string export_to;           // write the weights as a Transformers directory there and exit
  std::vector<std::string> notes;  // for the log: the deck taken, what overrides replace as well
  /// A line for every option there is, given or not: what all ranks must have been started with.
  std::vector<std::string> given;
  Verbosity verbosity = Verbosity::normal;  // of the log
};

}  // namespace tern::job
