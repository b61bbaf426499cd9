// Log of the training loop: a line per logged step, and the end of the run.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.hpp"
#include "base/host.hpp"
#include "campaign/loss_scale.hpp"
#include "campaign/resumption.hpp"
#include "campaign/trainer.hpp"
#include "comm/text.hpp"
#include "comm/waits.hpp"
#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "job/exit_code.hpp"
#include "plan/measured_rate.hpp"
#include "plan/sizes.hpp"
#include "plan/throughput.hpp"
#include "words/numbers.hpp"

namespace tern::campaign {
namespace {

/// "79,670", "14.6 M"
std::string tokens_text(double tokens) {
  return tokens < 1e6 ? rounded(tokens) : rounded(tokens / 1e6) + " M";
}

}  // namespace

/// Interval since the last logged step. Collective.
template <class T>
report::RankUsage Trainer<T>::usage_of_ranks() {
  report::RankInterval mine;
  mine.wall = interval_seconds_;
  mine.waited = interval_wait_;
  mine.compute = phases_.take_compute_seconds();
  mine.stage = mesh_.pipeline().rank();
  mine.usage = meter_.read();
  const double now = clock_.seconds(), cpu = mine.usage.process.cpu_seconds;
  if (now > logged_at_) mine.cores = (cpu - logged_cpu_seconds_) / (now - logged_at_);
  logged_at_ = now;
  logged_cpu_seconds_ = cpu;
  return {mine, world_};
}

/// Names the slowest rank if it is slower than the others by the margin. Collective.
template <class T>
void Trainer<T>::name_slowest(const report::RankUsage& ranks) {
  const auto slow = ranks.slowest();  // the same on all ranks
  if (!slow || slow->excess < report::RankUsage::margin) return;
  const std::string host = comm::broadcast_text(host_name(), world_, slow->rank);
  log_.row_text(state_.step, "slowest: rank {} on {}, +{:.0f}%", slow->rank, host,
                100 * slow->excess);
}

/// Columns of log_step().
template <class T>
void Trainer<T>::begin_table() {
  std::vector<LogColumn> columns{{"loss", 7}};
  const std::vector<std::string> names = workload_.objective->parts();
  // Of many parts the first and the last are the ones to keep.
  for (std::size_t i = 0; i < names.size(); ++i)
    columns.push_back({names[i], std::max<std::size_t>(7, names[i].size()),
                       1 + static_cast<int>(std::min(i, names.size() - 1 - i))});
  columns.insert(columns.end(), {{"lr", 8}, {"grad", 7}, {"tokens/s", 9}});
  if (peak_tflops_) columns.push_back({"MFU", 5});
  columns.push_back({"left", 8});
  log_.begin_table("step", columns);
}

/// The step that ended, on a terminal.
template <class T>
void Trainer<T>::show_progress(const StepResult& result, double seconds) {
  const std::string left = left_text();
  log_.progress("step {}{}  loss {:.4f}  {} tokens/s{}", state_.step,
                timed_ ? "" : fmt::format(" of {}", deck_.campaign.max_steps), result.loss,
                rounded(static_cast<double>(result.counts.data_tokens) / seconds),
                left.empty() ? "" : "  " + left + " left");
}

template <class T>
void Trainer<T>::log_step(const StepResult& result, double rate) {
  const auto timed = phases_.scope(profile::Phase::output);
  const report::RankUsage ranks = usage_of_ranks();
  const double seconds = ranks.wall();
  const double throughput = static_cast<double>(interval_.data_tokens) / seconds;
  report::Values values{{"train/loss", result.loss},
                        {"train/grad_norm", result.gradient_norm},
                        {"train/lr", rate},
                        {"train/tokens", static_cast<double>(state_.tokens)},
                        {"train/skipped", static_cast<double>(state_.skipped)},
                        {"data/wait_share", ranks.waited() / seconds},
                        {"system/seconds", earlier_seconds_ + clock_.seconds()}};
  if (!starting_up()) values.emplace_back("train/throughput", throughput);
  if (deck::holds_samples(deck_.data)) {
    if (!starting_up())
      values.emplace_back("train/samples_per_second",
                          static_cast<double>(interval_.samples) / seconds);
    values.emplace_back("data/fill", data_.train.fill);
    values.emplace_back("train/learned_tokens", static_cast<double>(interval_.predicted()) /
                                                    static_cast<double>(interval_.data_tokens));
  }
  std::vector<std::string> cells{fmt::format("{:.4f}", result.loss)};
  const std::vector<std::string> names = workload_.objective->parts();
  for (std::size_t i = 0; i < names.size(); ++i) {
    values.emplace_back("train/loss_" + names[i], result.parts[i]);
    cells.push_back(fmt::format("{:.4f}", result.parts[i]));
  }
  if (!names.empty())
    values.emplace_back("train/loss_per_token",
                        workload_.objective->per_token(result.loss, result.parts, result.counts));
  for (const auto& [name, figure] : workload_.objective->figures(result.parts))
    values.emplace_back("train/" + name, figure);
  if (result.router_loss) values.emplace_back("train/router_loss", *result.router_loss);
  if (deck::compute_of(deck_.precision) == deck::Compute::fp16) {
    values.emplace_back("train/loss_scale", loss_scale_of(deck_.precision, state_));
    values.emplace_back("train/overflowed", static_cast<double>(state_.overflowed));
  }
  if (result.saturated) values.emplace_back("train/fp8_saturated", *result.saturated);
  std::string mfu = "-";
  if (peak_tflops_ && !starting_up()) {
    const double share =
        throughput * plan_.flops_per_token / (*peak_tflops_ * 1e12 * world_.size());
    values.emplace_back("train/mfu", share);
    mfu = fmt::format("{:.1f}%", 100 * share);
  }
  const report::Values system = ranks.metrics();
  values.insert(values.end(), system.begin(), system.end());
  if (metrics_)
    metrics_->write(state_.step, values,
                    {{"samples_hash", fmt::format("{:016x}", result.samples_hash)},
                     {"samples_hash_total", fmt::format("{:016x}", state_.samples_hash)}});
  cells.push_back(fmt::format("{:.2e}", rate));
  cells.push_back(fmt::format("{:.3f}", result.gradient_norm));
  cells.push_back(starting_up() ? "-" : rounded(throughput));
  if (peak_tflops_) cells.push_back(mfu);
  cells.push_back(left_text().empty() ? "-" : left_text());
  log_.row(state_.step, cells);
  if (starting_up() && log_.details())
    log_.row_text(state_.step, "first step: {:.3g} s, no part of a rate", seconds);
  name_slowest(ranks);
  if (!starting_up()) rates_.push_back(throughput);
  begin_interval();
}

template <class T>
void Trainer<T>::begin_interval() {
  interval_seconds_ = interval_wait_ = 0;
  interval_ = {};
}

/// "12 min"; empty where it cannot be known.
template <class T>
std::string Trainer<T>::left_text() const {
  const auto rows_in = [&](std::int64_t steps) {
    return layout_.steps.rows_in(static_cast<std::uint64_t>(steps));
  };
  const double rows = timed_ ? 0 : rows_in(deck_.campaign.max_steps) - rows_in(state_.step);
  const auto left = left_.seconds(state_.step, rows, earlier_seconds_ + clock_.seconds());
  return left ? duration(*left) : "";
}

template <class T>
double Trainer<T>::cost(double seconds) const {
  return seconds / 3600 * world_.size() * deck_.cost.dollars_per_gpu_hour;
}

/// Ends the run; returns what of it is on disk, the same on all ranks. Collective.
template <class T>
typename Trainer<T>::Kept Trainer<T>::finish(Stop stop) {
  if (world_.rank() == 0)
    plan::store_rate(directory_.path, plan::rate_key(plan_, mesh_.extents()), rates_);
  if (stop == Stop::diverged) {
    wait_for_checkpoint();
    log_.result(
        "stopped at step {}: {} steps in a row had no finite loss or gradient. The last good "
        "checkpoint is in {}. Lower &optimizer lr{}, or lengthen warmup_steps",
        state_.step, state_.skipped_in_row, directory_.checkpoints().string(),
        judged() && deck_.objective.preset != "aggressive" ? ", set preset = 'aggressive'" : "");
    complete_records();
    if (judged()) conclude();
    return {};
  }
  if (stop != Stop::interrupted) {
    ending_ = true;
    evaluate();
    if (stop_ == Stop::interrupted) stop = stop_;
    stop_ = stop;
  }
  const Kept kept = keep_all();
  account();
  if (stop != Stop::interrupted && !std::isfinite(state_.validation_loss)) {
    stop_ = Stop::diverged;
    log_.result(
        "diverged at step {}: the validation loss is {}. Weights that are not finite come from "
        "&model load, or from too high a rate: lower &optimizer lr, or lengthen warmup_steps",
        state_.step, state_.validation_loss);
    return kept;
  }
  log_.result("{}", summary_of_end(stop, kept));
  const std::vector<std::string>& beside = deck_.evaluation.beside;
  if (stop != Stop::interrupted && !judged() && !beside.empty() && world_.rank() == 0)
    log_.result("{}", report::compared_text(beside, state_.validation_loss));
  log_.line("{}", phases_.table(world_));
  if (state_.joules > 0) log_.line("energy {:.1f} kJ", state_.joules / 1e3);
  const profile::DeviceUsage usage = meter_.read();
  log_.line("memory planned {} per rank{}; in use {}, at most {}", plan::size_text(plan_.bytes()),
            plan_.driver_bytes > 0
                ? fmt::format(" and {} of the driver's", plan::size_text(plan_.driver_bytes))
                : std::string(),
            plan::size_text(usage.memory_bytes), plan::size_text(usage.peak_bytes));
  if (metrics_ && !metrics_->events_complete())
    log_.warning("{}: TensorBoard's file could not be written and lacks some events",
                 directory_.path.string());
  if (!samples_.empty() && !replace_file(directory_.samples(), samples_))
    log_.warning("{} could not be written", directory_.samples().string());
  return kept;
}

template <class T>
std::string Trainer<T>::summary_of_end(Stop stop, Kept kept) const {
  if (!kept.last)
    return fmt::format(
        "ended at step {}, but ITS CHECKPOINT COULD NOT BE WRITTEN to {}: free space there, then "
        "resume from the last one with --resume; exit code {}",
        state_.step, directory_.checkpoints().string(), static_cast<int>(job::not_saved));
  if (!kept.best || (!kept.records && stop != Stop::interrupted))
    return fmt::format(
        "ended at step {} with its checkpoint, but {} COULD NOT BE WRITTEN to {}: free space "
        "there, "
        "then complete the run with --resume; exit code {}",
        state_.step,
        kept.best ? "METRICS OR EVALUATIONS"
                  : fmt::format("THE BEST CHECKPOINT, of step {},", lost_best_),
        directory_.path.string(), static_cast<int>(job::not_saved));
  if (stop == Stop::interrupted)
    return fmt::format(
        "stopped at step {} by {}: checkpoint written, resume with --resume; exit "
        "code {}",
        state_.step, stop_reason_, static_cast<int>(job::interrupted));
  const std::string nothing = resumed_ && !progressed_ ? nothing_left(deck_, state_) : "";
  if (!nothing.empty()) return nothing;
  const std::string spent = fmt::format(
      "{}, {} tokens{}", duration(state_.seconds), tokens_text(static_cast<double>(state_.tokens)),
      deck_.cost.dollars_per_gpu_hour > 0 ? fmt::format(", ${:.2f}", cost(state_.seconds)) : "");
  if (stop == Stop::target)
    return fmt::format("reached validation loss {:.4f} <= {:.4f} at step {}: {}",
                       state_.validation_loss, deck_.evaluation.target_loss, state_.step, spent);
  return fmt::format("{} at step {}: validation loss {:.4f}, best {:.4f} at step {}; {}",
                     stop == Stop::hours      ? timed_ ? "finished" : "stopped by max_hours"
                     : stop == Stop::patience ? "stopped by patience"
                                              : "finished",
                     state_.step, state_.validation_loss, state_.best_loss, state_.best_step,
                     spent);
}

/// Warns at the start if the verdict at the end will lack metrics.
template <class T>
void Trainer<T>::warn_of_verdict() const {
  if (!judged()) return;
  const std::int64_t logged = (deck_.campaign.max_steps - deck_.optimizer.warmup_steps) /
                              std::max<std::int64_t>(1, deck_.output.log_every);
  if (!timed_ && logged < static_cast<std::int64_t>(report::verdict_bars::min_logged))
    log_.warning(
        "the verdict will fail: it needs {} logged steps after the warmup, and this deck logs {}; "
        "lower &output log_every",
        report::verdict_bars::min_logged, logged);
  if (deck_.evaluation.every == 0)
    log_.warning(
        "the verdict will fail: it compares the last evaluation with the first, and &evaluation "
        "every = 0 makes only one");
  const std::string& baseline = deck_.evaluation.baseline;
  if (!baseline.empty() &&
      !std::filesystem::exists(std::filesystem::path(baseline) / "metrics.jsonl"))
    log_.warning(
        "the verdict needs the run {} of &evaluation baseline, which does not exist yet: train it "
        "before this one ends",
        baseline);
}

/// Verdict on the metrics logged so far, written to the run directory. Rank 0 only.
template <class T>
report::Verdict Trainer<T>::judge_so_far() {
  const report::Verdict verdict = report::judge(directory_.path, deck_);
  if (!write_verdict(directory_.path, verdict))
    log_.warning("{}/verdict.json could not be written", directory_.path.string());
  return verdict;
}

/// Whether the final verdict, if the run has one, is good; the same on all ranks. Collective.
template <class T>
bool Trainer<T>::conclude() {
  if (!judged()) return true;
  std::int64_t failed = 0;
  if (world_.rank() == 0) {
    const report::Verdict verdict = judge_so_far();
    failed = verdict.succeeded() ? 0 : 1;
    log_.result("{}", report::text(verdict));
    report_->make();
  }
  world_.all_reduce(&failed, 1, comm::Sum::max);
  return failed == 0;
}

/// Table and trace of the profiled step, for each rank. Collective.
template <class T>
void Trainer<T>::write(profile::Profile& profile) {
  profile.finish();
  const auto timed = phases_.scope(profile::Phase::output);
  const int rank = world_.rank();
  if (!profile.trouble().empty()) {
    log_.warning("step {} is not profiled: {}", deck_.output.profile, profile.trouble());
    return;
  }
  profile::Ceilings ceilings;
  if (const auto rates = plan::device_rates(deck_)) {
    ceilings.flops = rates->flops, ceilings.bytes = rates->bytes;
    if (deck::compute_of(deck_.precision) == deck::Compute::fp8)
      ceilings.fp8_flops = 1e12 * plan::peak_tflops(deck_).value_or(0);
  }
  const std::filesystem::path folder = directory_.profile();
  make_own_folder(folder);
  const std::string table = profile.table(deck_.output.profile, ceilings);
  replace_file(folder / fmt::format("rank_{:04}.txt", rank), table);
  replace_file(folder / fmt::format("rank_{:04}.json", rank), profile.trace(rank));
  log_.line("profile in {}: {}", folder.string(), table.substr(0, table.find('\n')));
}

#define INSTANTIATE(T)                                                \
  template void Trainer<T>::log_step(const StepResult&, double);      \
  template void Trainer<T>::begin_table();                            \
  template void Trainer<T>::begin_interval();                         \
  template void Trainer<T>::show_progress(const StepResult&, double); \
  template void Trainer<T>::write(profile::Profile&);                 \
  template double Trainer<T>::cost(double) const;                     \
  template Trainer<T>::Kept Trainer<T>::finish(Stop);                 \
  template void Trainer<T>::warn_of_verdict() const;                  \
  template report::Verdict Trainer<T>::judge_so_far();                \
  template bool Trainer<T>::conclude();
INSTANTIATE(float)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::campaign
