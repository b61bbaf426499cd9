// Checkpoints of the training loop, and its end.
#include <cmath>

#include "base/files.hpp"
#include "campaign/training/trainer.hpp"
#include "plan/measured_rate.hpp"
#include "plan/sizes.hpp"

namespace tern::campaign {

template <class T>
void Trainer<T>::save() {
  if (checkpoints_.holds(state_)) return;
  const auto timed = phases_.scope(profile::Phase::checkpoint);
  const Timer timer;
  checkpoints_.retry_best(state_);
  account();
  checkpoints_.save(state_, metrics());
  warn_of_unwritten();
  longest_save_ = std::max(longest_save_, timer.seconds());
  left_.saved(timer.seconds());
  if (log_.details())
    log_.row_text(state_.step, "checkpoint: {:.2f} s until training resumes", timer.seconds());
}

/// Once. Rank 0.
template <class T>
void Trainer<T>::warn_of_unwritten() {
  if (warned_of_unwritten_ || !metrics_ || metrics_->unwritten().empty()) return;
  warned_of_unwritten_ = true;
  log_.warning("{}/metrics.jsonl cannot be written: its lines are kept and written later",
               directory_.path.string());
}

/// Ends the run; returns what of it is on disk, the same on all ranks. Collective.
template <class T>
Kept Trainer<T>::finish(Stop stop) {
  if (world_.rank() == 0)
    plan::store_rate(directory_.path, plan::rate_key(plan_, mesh_.extents()), rates_);
  if (stop == Stop::diverged) {
    checkpoints_.wait();
    log_.result("{}", divergence_text(state_, deck_, directory_.checkpoints()));
    checkpoints_.complete_records(metrics());
    if (judged(deck_)) conclude();
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
  log_.result("{}",
              summary_of({stop, kept, state_, deck_, directory_.path, directory_.checkpoints(),
                          world_.size(), stop_reason_, resumed_ && !progressed_}));
  const std::vector<std::string>& others = deck_.evaluation.compare_with;
  if (stop != Stop::interrupted && !judged(deck_) && !others.empty() && world_.rank() == 0)
    log_.result("{}", report::compared_text(others, state_.validation_loss));
  log_usage();
  if (metrics_ && !metrics_->events_complete())
    log_.warning("{}: TensorBoard's file could not be written and lacks some events",
                 directory_.path.string());
  if (!samples_.empty() && !replace_file(directory_.samples(), samples_))
    log_.warning("{} could not be written", directory_.samples().string());
  return kept;
}

/// Saves the last checkpoint and completes the records. If the disk refuses these, the checkpoint is
/// written again and holds what they lack, for a resumed run to write. Collective.
template <class T>
Kept Trainer<T>::keep_all() {
  save();
  Kept kept;
  kept.last = checkpoints_.complete();
  kept.lost_best = checkpoints_.lost_best(state_);
  kept.records = checkpoints_.complete_records(metrics());
  if (!kept.last || kept.records) return kept;
  kept.last = checkpoints_.save_again(state_, metrics());
  warn_of_unwritten();
  kept.records = checkpoints_.complete_records(metrics());
  return kept;
}

/// Time, energy and memory of the run. Collective.
template <class T>
void Trainer<T>::log_usage() {
  log_.line("{}", phases_.table(world_));
  if (state_.joules > 0) log_.line("energy {:.1f} kJ", state_.joules / 1e3);
  const profile::DeviceUsage usage = meter_.read();
  log_.line("memory planned {} per rank{}; in use {}, at most {}", plan::size_text(plan_.bytes()),
            plan_.driver_bytes > 0
                ? fmt::format(" and {} of the driver's", plan::size_text(plan_.driver_bytes))
                : std::string(),
            plan::size_text(usage.memory_bytes), plan::size_text(usage.peak_bytes));
}

/// Whether the final verdict, if the run has one, is good; the same on all ranks. Collective.
template <class T>
bool Trainer<T>::conclude() {
  if (!judged(deck_)) return true;
  std::int64_t failed = 0;
  if (world_.rank() == 0) {
    const report::Verdict verdict = judge_so_far(directory_.path, deck_, log_);
    failed = verdict.succeeded() ? 0 : 1;
    log_.result("{}", report::text(verdict));
    report_->make();
  }
  world_.all_reduce(&failed, 1, comm::Sum::max);
  return failed == 0;
}

#define INSTANTIATE(T)                    \
  template void Trainer<T>::save();       \
  template Kept Trainer<T>::finish(Stop); \
  template bool Trainer<T>::conclude();
INSTANTIATE(float)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::campaign
