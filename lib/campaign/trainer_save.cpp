// Checkpoints of the training loop, and what is on disk at its end.
#include "campaign/trainer.hpp"
#include "comm/waits.hpp"

namespace tern::campaign {

template <class T>
void Trainer<T>::save() {
  if (saved_step_ == state_.step) return;
  const auto timed = phases_.scope(profile::Phase::checkpoint);
  const Timer timer;
  retry_best();
  account();
  checkpoint::Header header = to_header(state_, deck::print(deck_, false));
  if (metrics_) {  // the checkpoint implies that these steps are logged, or holds their lines
    metrics_->sync();
    if (!metrics_->unwritten().empty()) header.texts[unwritten_metrics] = metrics_->unwritten();
    warn_of_unwritten();
  }
  header.numbers.merge(workload_.objective->state());
  snapshot_.save(workload_.context, store_, header);
  const comm::LongWait files;  // the previous checkpoint may still be written to a slow disk
  world_.barrier();
  saved_step_ = state_.step;
  longest_save_ = std::max(longest_save_, timer.seconds());
  left_.saved(timer.seconds());
  if (log_.details())
    log_.row_text(state_.step, "checkpoint: {:.2f} s until training resumes", timer.seconds());
}

/// No later checkpoint replaces the best one: if its write failed, it is tried again before its copy
/// in memory is overwritten. Collective.
template <class T>
void Trainer<T>::retry_best() {
  if (!deck_.checkpoint.keep_best || saved_step_ <= 0 || saved_step_ != state_.best_step) return;
  if (!world_.any(!wait_for_checkpoint())) return;
  store_.retry();
  if (world_.any(!wait_for_checkpoint())) lost_best_ = saved_step_;
}

/// Once. Rank 0.
template <class T>
void Trainer<T>::warn_of_unwritten() {
  if (warned_of_unwritten_ || metrics_->unwritten().empty()) return;
  warned_of_unwritten_ = true;
  log_.warning("{}/metrics.jsonl cannot be written: its lines are kept and written later",
               directory_.path.string());
}

/// Waits for the last checkpoint; whether it is complete. Collective.
template <class T>
bool Trainer<T>::wait_for_checkpoint() {
  const auto timed = phases_.scope(profile::Phase::checkpoint);
  const comm::LongWait files;
  const bool whole = store_.wait();
  world_.barrier();
  return whole;
}

/// Saves the last checkpoint, with one retry; whether it is on disk, the same on all ranks.
/// Collective.
template <class T>
bool Trainer<T>::save_at_last() {
  save();
  if (!world_.any(!wait_for_checkpoint())) return true;
  store_.retry();
  return !world_.any(!wait_for_checkpoint());
}

/// Writes what the disk has refused of metrics and evaluations; whether they are complete, the same
/// on all ranks. Collective.
template <class T>
bool Trainer<T>::complete_records() {
  const auto timed = phases_.scope(profile::Phase::checkpoint);
  const bool lines = !metrics_ || metrics_->sync();
  const bool evaluations = store_.record();
  return !world_.any(!lines || !evaluations);
}

/// Saves the last checkpoint and completes the records. If the disk refuses these, the checkpoint is
/// written again and holds what they lack, for a resumed run to write. Collective.
template <class T>
typename Trainer<T>::Kept Trainer<T>::keep_all() {
  Kept kept;
  kept.last = save_at_last();
  kept.best = lost_best_ < 0 || lost_best_ != state_.best_step;
  kept.records = complete_records();
  if (!kept.last || kept.records) return kept;
  saved_step_ = -1;
  save();
  if (state_.evaluated_step == state_.step && !evaluation_.empty())
    store_.evaluated(state_.step, evaluation_,
                     deck_.checkpoint.keep_best && state_.best_step == state_.step);
  kept.last = !world_.any(!wait_for_checkpoint());
  kept.records = complete_records();
  return kept;
}

#define INSTANTIATE(T)                             \
  template void Trainer<T>::save();                \
  template bool Trainer<T>::wait_for_checkpoint(); \
  template bool Trainer<T>::complete_records();    \
  template Trainer<T>::Kept Trainer<T>::keep_all();
INSTANTIATE(float)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::campaign
