/// How a training run ends, in words and with its verdict.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "campaign/training/state.hpp"
#include "deck/deck.hpp"
#include "report/verdict.hpp"

namespace tern::campaign {

enum class Stop { none, steps, hours, target, patience, interrupted, diverged };

/// What is on disk at the end.
struct Kept {
  bool last = true;                       // the last checkpoint, with what the records lack
  std::optional<std::int64_t> lost_best;  // step of the best checkpoint, if that is not
  bool records = true;                    // metrics and evaluations
};

/// Stop::target or Stop::patience if the last evaluation ends the run; else Stop::none.
Stop stop_of(const deck::Evaluation& rules, const TrainState& state);

struct Ending {
  Stop stop;
  Kept kept;
  const TrainState& state;
  const deck::Deck& deck;
  std::filesystem::path directory, checkpoints;  // of the run
  int ranks;
  std::string interruption;  // what interrupted it
  bool idle;                 // resumed, and there was nothing to do
};

/// Sentence for the end of the log.
std::string summary_of(const Ending& ending);
/// The same for a run that diverged in its steps.
std::string divergence_text(const TrainState& state, const deck::Deck& deck,
                            const std::filesystem::path& checkpoints);

/// Whether the run ends with a verdict.
bool judged(const deck::Deck& deck);
/// Warns at the start if the verdict at the end will lack metrics.
void warn_of_verdict(const deck::Deck& deck, Log& log);
/// Verdict on the metrics logged so far, written to the run directory. Rank 0 only.
report::Verdict judge_so_far(const std::filesystem::path& directory, const deck::Deck& deck,
                             Log& log);

}  // namespace tern::campaign
