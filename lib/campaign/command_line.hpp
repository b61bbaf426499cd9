/// Options of ./trainer, and their deck. Needs neither MPI nor a device.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "job/options.hpp"

namespace tern::campaign {

struct CommandLine {
  std::string deck;                  // path of the deck, or with --list of a folder
  std::string taken;                 // for the log: the deck that was found by its name
  std::vector<std::string> compare;  // directories of runs
  std::vector<std::string> set;      // overrides, in order; --prompt and others expand to some
  std::int64_t quick = 0;            // steps of a shortened run; 0: as in the deck
  bool help = false, version = false, list = false, print_deck = false;
  std::string usage;  // text of --help
  job::Options options;
};

/// Throws UserError for unknown and for contradictory options.
CommandLine parse_command_line(int argc, const char* const* argv);

/// The deck of the command line with its overrides, resolved. `notes`: lines on what overrides
/// replace in addition to what they name. Throws UserError.
deck::Deck read_deck(const CommandLine& line, std::vector<std::string>* notes = nullptr);

/// Prints what needs no deck (help, version, list, compare): true if one of them was asked for.
bool shows_without_deck(const CommandLine& line, std::ostream& out);

/// Overrides that shorten a deck to `steps` steps: warmup and the intervals of evaluations,
/// checkpoints and log lines shrink with max_steps; at most four evaluations remain. The rest of
/// the schedule is in fractions of max_steps.
std::vector<std::string> quick_overrides(const deck::Deck& deck, std::int64_t steps);

}  // namespace tern::campaign
