/// The verdict of a run of recursive refinement (&objective kind = 'refinement'; after TRM,
/// Jolicoeur-Martineau, arXiv 2510.04871): whether each of its S = &objective supervision_steps
/// answers is better than the one before, by as much as the deck expects, after a steady training.
/// The next phase should start only if it is.
///
/// It is a function of metrics.jsonl and the deck, so that a resumed run has the same. Findings:
///
///   order                  val/loss_step_0 > ... > val/loss_step_{S-1} at the last evaluation,
///                          else failure
///   refinement             (L_0 - L_{S-1}) / L_0 of these in refinement_range: below is a
///                          failure, above a remark
///   finite values          every logged loss and gradient norm finite and no step skipped, else
///                          failure
///   gradient norm          median of train/grad_norm after the warmup in norm_range, else warning
///   largest gradient norm  no train/grad_norm above norm_limit, warmup included, else warning
///   smoothness             of the steps' training losses after the warmup, see below
///   progress               val/loss of the last evaluation below that of the first, else failure
///
/// A finding whose metrics are missing is a failure that says which.
///
/// Smoothness looks at train/loss_step_s of each s: train/loss has the reward in it and may cross
/// zero. With m(i) the mean of the `mean_over` logged losses before the i-th, and relative to no
/// less than `smallest_mean`: the rise is the largest of L(i) over the lowest m so far, which shows
/// a spike as well as a slow climb; the jitter is the median of |L(i) - L(i-1)| over m(i). Both are
/// those of the worst step s.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "deck/deck.hpp"

namespace tern::report {

/// Bars that no deck sets.
namespace verdict_bars {
constexpr std::size_t least_logged = 10;  // steps after the warmup, to judge norms and smoothness
constexpr std::size_t mean_over = 5;      // logged losses
constexpr double smallest_mean = 0.1;     // nats: a loss near zero doubles without harm
constexpr double rise_warning = 0.2, rise_failure = 0.5;
constexpr double jitter_warning = 0.1, jitter_failure = 0.25;
}  // namespace verdict_bars

enum class Grade { good, remark, warning, failure };
const char* grade_name(Grade grade);

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

struct Finding {
  std::string name;
  Grade grade = Grade::good;
  std::string found, expected;  // for people
  double figure = unknown;      // what was judged
  std::string advice;           // which value of the deck to change, and how; empty if good
};

/// The validation loss of a run of &evaluation beside. Refinement alone can be had by a bad first
/// answer; this cannot. It is stated and fails nothing: whether the runs saw equal data, compute or
/// parameters is for their decks to say.
struct Beside {
  std::string name, directory;  // name: the directory's last part
  std::int64_t step = 0;        // of its last evaluation
  double loss = unknown;        // val/loss there
  double difference = unknown;  // this run's last answer less that
  std::string trouble;          // why there is no loss; else empty
};
/// As "1.2000 at step 400; this run's last answer, 1.1000, is lower by 0.1000 (8.3%)".
std::string in_words(const Beside& other);

struct Verdict {
  std::string preset;
  std::int64_t step = 0;  // of the last evaluation
  double loss = unknown;  // of its last answer
  std::vector<Finding> findings;
  std::vector<Beside> beside;

  /// No finding is a failure.
  bool succeeded() const;
  const char* word() const { return succeeded() ? "good" : "failed"; }
};

/// From metrics.jsonl of the run and of those beside it; for rank 0. Throws nothing for what is
/// missing: that is a failure, or a Beside with its trouble.
Verdict judge(const std::filesystem::path& run_directory, const deck::Deck& deck);

/// A table for the log, with the advice and the runs beside.
std::string text(const Verdict& verdict);

/// RUN/verdict.json, visible by a rename; false if the disk refuses. Figures that are unknown are
/// null. The next report.html shows it.
bool write_verdict(const std::filesystem::path& run_directory, const Verdict& verdict);
/// What write_verdict wrote; nothing if the file is not there or is no such file.
std::optional<Verdict> read_verdict(const std::filesystem::path& run_directory);

}  // namespace tern::report
