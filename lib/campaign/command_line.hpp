/// The options of ./trainer, and the deck that they name. Nothing here needs MPI or a device.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "job/options.hpp"

namespace tern::campaign {

struct CommandLine {
  std::string deck;              // path of the deck
  std::vector<std::string> set;  // overrides, in order; those that --prompt and others stand for
  std::int64_t quick = 0;        // steps of a shortened run; 0: as the deck says
  bool help = false, version = false, list = false, print_deck = false;
  std::string usage;  // what --help prints
  job::Options options;
};

/// Throws UserError for what is no option, and for options that contradict each other.
CommandLine parse_command_line(int argc, const char* const* argv);

/// The deck of the command line with its overrides, resolved. Throws UserError.
deck::Deck read_deck(const CommandLine& line);

/// Does what needs no deck (help, version, list): true if that was asked for.
bool shows_without_deck(const CommandLine& line, std::ostream& out);

/// Overrides that make a deck one of `steps` steps: warmup and the intervals of evaluations,
/// checkpoints and log lines shrink with max_steps; at most four evaluations are left. The rest of
/// the schedule counts in shares of max_steps.
std::vector<std::string> quick_overrides(const deck::Deck& deck, std::int64_t steps);

}  // namespace tern::campaign
