/// Verdict of a recursive-refinement run (&objective kind = 'refinement'; after TRM,
/// Jolicoeur-Martineau, arXiv 2510.04871): whether each of its S = &objective supervision_steps
/// answers improves on the one before, by as much as the deck expects, after steady training. The
/// next phase should start only if so.
///
/// A function of metrics.jsonl, those of the baseline and the deck only, so that a resumed run gets
/// the same. Findings:
///
///   order                  val/loss_step_0 > ... > val/loss_step_{S-1} at the last evaluation,
///                          else failure
///   refinement             (L_0 - L_{S-1}) / L_0 of these losses in refinement_range, else
///                          failure if below, remark if above
///   finite values          every logged loss and gradient norm finite and no step skipped, else
///                          failure
///   gradient norm          median of train/grad_norm after the warmup in norm_range, else warning
///   largest gradient norm  no train/grad_norm above norm_limit, warmup included, else warning
///   smoothness             of the steps' training losses after the warmup, see below
///   progress               val/loss of the last evaluation below that of the first, else failure
///   baseline               if &evaluation baseline names a run: val/loss, the last answer's, below
///                          that run's last one, else failure
///
/// A finding whose metrics are missing is a failure that says which.
///
/// Smoothness is judged on train/loss_step_s for each s: train/loss contains the reward and may
/// cross zero. Let m(i) be the mean of the `mean_over` logged losses before the i-th. Rise: the
/// largest excess of L(i) over the lowest m so far, relative to it, which shows a spike as well as
/// a slow climb. Jitter: the median of |L(i) - L(i-1)| / m(i). No divisor is below `smallest_mean`.
/// Both are those of the worst s.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "report/compared_run.hpp"

namespace tern::report {

/// Thresholds that no deck sets.
namespace verdict_bars {
constexpr std::size_t min_logged = 10;  // steps after warmup that norms and smoothness need
constexpr std::size_t mean_over = 5;    // logged losses
constexpr double smallest_mean = 0.1;   // nats: a loss near zero doubles without harm
constexpr double rise_warning = 0.2, rise_failure = 0.5;
constexpr double jitter_warning = 0.1, jitter_failure = 0.25;
}  // namespace verdict_bars

enum class Grade { good, remark, warning, failure };
const char* grade_name(Grade grade);

struct Finding {
  std::string name;
  Grade grade = Grade::good;
  std::string found, expected;  // in words
  double figure = unknown;      // the judged value
  std::string advice;           // deck value to change, and how; empty if good
};

struct Verdict {
  std::string preset;
  std::int64_t step = 0;  // last evaluation
  double loss = unknown;  // val/loss of the last answer
  std::vector<Finding> findings;
  /// &evaluation compare_with: a bad first answer is enough for a high refinement, not for a low
  /// loss.
  std::vector<ComparedRun> compared;  // difference: of the last answer

  /// True if no finding is a failure.
  bool succeeded() const;
  const char* word() const { return succeeded() ? "good" : "failed"; }
};

/// Judges from metrics.jsonl of the run and of the runs compared with. Called by rank 0. Does not
/// throw for missing metrics: they are a failure, or a ComparedRun with its trouble.
Verdict judge(const std::filesystem::path& run_directory, const deck::Deck& deck);

/// Table for the log, with the advice and the runs compared with.
std::string text(const Verdict& verdict);

/// Writes RUN/verdict.json, renamed into place; false if that fails. Unknown figures are null. The
/// next report.html shows it.
bool write_verdict(const std::filesystem::path& run_directory, const Verdict& verdict);
/// Reads what write_verdict wrote; nothing if the file is missing or not of this format.
std::optional<Verdict> read_verdict(const std::filesystem::path& run_directory);

}  // namespace tern::report
