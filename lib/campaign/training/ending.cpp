#include "campaign/training/ending.hpp"

#include <algorithm>

#include "campaign/training/resumption.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"
#include "job/exit_code.hpp"
#include "words/numbers.hpp"

namespace tern::campaign {
namespace {

/// "79,670", "14.6 M"
std::string tokens_text(double tokens) {
  return tokens < 1e6 ? rounded(tokens) : rounded(tokens / 1e6) + " M";
}

/// Time, tokens and cost.
std::string spent_text(const Ending& end) {
  const double rate = end.deck.cost.dollars_per_gpu_hour;
  return fmt::format(
      "{}, {} tokens{}", duration(end.state.seconds),
      tokens_text(static_cast<double>(end.state.tokens)),
      rate > 0 ? fmt::format(", ${:.2f}", end.state.seconds / 3600 * end.ranks * rate) : "");
}

}  // namespace

Stop stop_of(const deck::Evaluation& rules, const TrainState& state) {
  if (rules.target_loss > 0 && state.validation_loss <= rules.target_loss) return Stop::target;
  if (rules.patience > 0 && state.evaluations_without_gain >= rules.patience) return Stop::patience;
  return Stop::none;
}

std::string summary_of(const Ending& end) {
  const TrainState& state = end.state;
  if (!end.kept.last)
    return fmt::format(
        "ended at step {}, but ITS CHECKPOINT COULD NOT BE WRITTEN to {}: free space there, then "
        "resume from the last one with --resume; exit code {}",
        state.step, end.checkpoints.string(), static_cast<int>(job::not_saved));
  if (end.kept.lost_best || (!end.kept.records && end.stop != Stop::interrupted))
    return fmt::format(
        "ended at step {} with its checkpoint, but {} COULD NOT BE WRITTEN to {}: free space "
        "there, then complete the run with --resume; exit code {}",
        state.step,
        end.kept.lost_best ? fmt::format("THE BEST CHECKPOINT, of step {},", *end.kept.lost_best)
                           : "METRICS OR EVALUATIONS",
        end.directory.string(), static_cast<int>(job::not_saved));
  if (end.stop == Stop::interrupted)
    return fmt::format(
        "stopped at step {} by {}: checkpoint written, resume with --resume; exit code {}",
        state.step, end.interruption, static_cast<int>(job::interrupted));
  const std::string nothing = end.idle ? nothing_left(end.deck, state) : "";
  if (!nothing.empty()) return nothing;
  if (end.stop == Stop::target)
    return fmt::format("reached validation loss {:.4f} <= {:.4f} at step {}: {}",
                       state.validation_loss, end.deck.evaluation.target_loss, state.step,
                       spent_text(end));
  const bool limited = end.stop == Stop::hours && !deck::timed(end.deck.campaign);
  return fmt::format("{} at step {}: validation loss {:.4f}, best {:.4f} at step {}; {}",
                     limited                      ? "stopped by max_hours"
                     : end.stop == Stop::patience ? "stopped by patience"
                                                  : "finished",
                     state.step, state.validation_loss, state.best_loss, state.best_step,
                     spent_text(end));
}

std::string divergence_text(const TrainState& state, const deck::Deck& deck,
                            const std::filesystem::path& checkpoints) {
  return fmt::format(
      "stopped at step {}: {} steps in a row had no finite loss or gradient. The last good "
      "checkpoint is in {}. Lower &optimizer lr{}, or lengthen warmup_steps",
      state.step, state.skipped_in_row, checkpoints.string(),
      judged(deck) && deck.objective.preset != "aggressive" ? ", set preset = 'aggressive'" : "");
}

bool judged(const deck::Deck& deck) { return deck::kind_of(deck).judged; }

void warn_of_verdict(const deck::Deck& deck, Log& log) {
  if (!judged(deck)) return;
  const std::int64_t logged = (deck.campaign.max_steps - deck.optimizer.warmup_steps) /
                              std::max<std::int64_t>(1, deck.output.log_every);
  if (!deck::timed(deck.campaign) &&
      logged < static_cast<std::int64_t>(report::verdict_bars::min_logged))
    log.warning(
        "the verdict will fail: it needs {} logged steps after the warmup, and this deck logs {}; "
        "lower &output log_every",
        report::verdict_bars::min_logged, logged);
  if (deck.evaluation.every == 0)
    log.warning(
        "the verdict will fail: it compares the last evaluation with the first, and &evaluation "
        "every = 0 makes only one");
  const std::string& baseline = deck.evaluation.baseline;
  if (!baseline.empty() &&
      !std::filesystem::exists(std::filesystem::path(baseline) / "metrics.jsonl"))
    log.warning(
        "the verdict needs the run {} of &evaluation baseline, which does not exist yet: train it "
        "before this one ends",
        baseline);
}

report::Verdict judge_so_far(const std::filesystem::path& directory, const deck::Deck& deck,
                             Log& log) {
  const report::Verdict verdict = report::judge(directory, deck);
  if (!write_verdict(directory, verdict))
    log.warning("{}/verdict.json could not be written", directory.string());
  return verdict;
}

}  // namespace tern::campaign
