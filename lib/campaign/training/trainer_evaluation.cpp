// Evaluations of the training loop: validation loss, problems solved, samples.
#include <cmath>

#include "answer/interval.hpp"
#include "base/files.hpp"
#include "campaign/training/trainer.hpp"
#include "campaign/writer.hpp"
#include "words/numbers.hpp"

namespace tern::campaign {

template <class T>
void Trainer<T>::evaluate() {
  if (state_.evaluated_step == state_.step) return;
  const Timer whole;
  if (state_.step > 0) save();  // a kill from here on repeats only this evaluation
  const auto timed = phases_.scope(profile::Phase::evaluation);
  const Timer timer;
  const auto stop = [this](std::size_t done, std::size_t all) {
    log_.long_progress("step {}  evaluation: {} of {} micro-batches done", state_.step, done, all);
    return stop_requested();
  };
  workload_.optimizer->exchange_average(workload_.context);
  const auto result = campaign::evaluate(workload_, deck_, layout_, *data_.valid.source,
                                         mesh_.data(), state_.step > 0, stop);
  const double seconds = timer.seconds();
  std::optional<Accuracy> accuracy;
  const bool solves = workload_.sampler && state_.step > 0;
  if (result && solves) accuracy = solve_problems();
  if (!result || (solves && !accuracy)) {
    workload_.optimizer->exchange_average(workload_.context);
    stop_ = Stop::interrupted;
    return;
  }
  const bool better = take_in(*result);
  log_.row_text(state_.step, "validation loss {:.4f}  perplexity {:.2f}  ({} tokens, {:.1f} s){}",
                result->loss, std::exp(result->loss), grouped(result->tokens), seconds,
                better ? "  best" : "");
  for (const auto& [name, value] : result->metrics)
    if (log_.details()) log_.row_text(state_.step, "{} {:.5g}", name, value);
  report::Values values{{"val/loss", result->loss},
                        {"val/perplexity", std::exp(result->loss)},
                        {"system/seconds", clock_.seconds()}};
  values.insert(values.end(), result->metrics.begin(), result->metrics.end());
  if (accuracy) show(*accuracy, values);
  if (metrics_) metrics_->write(state_.step, values);
  write_samples();
  if (judged(deck_) && world_.rank() == 0 && state_.step > 0)
    judge_so_far(directory_.path, deck_, log_);
  workload_.optimizer->exchange_average(workload_.context);
  account();
  if (metrics_) metrics_->sync();
  // Last: a checkpoint marked evaluated implies all of the above.
  std::map<std::string, double> numbers = to_numbers(state_);
  numbers.merge(workload_.objective->state());
  numbers.emplace("val/loss", result->loss);
  checkpoints_.evaluated(state_, numbers, better);
  if (report_) report_->make();
  left_.evaluated(whole.seconds());
}

/// Updates the state of the run with an evaluation; returns whether it is the best so far.
template <class T>
bool Trainer<T>::take_in(const objective::Score& result) {
  state_.evaluated_step = state_.step;
  state_.validation_loss = result.loss;
  const bool better = state_.step > 0 && result.loss < state_.best_loss;
  if (better) {
    state_.best_loss = result.loss;
    state_.best_step = state_.step;
    state_.evaluations_without_gain = 0;
  } else if (state_.step > 0) {
    ++state_.evaluations_without_gain;
  }
  if (state_.step > 0) progressed_ = true;
  stop_ = stop_of(deck_.evaluation, state_);
  return better;
}

/// Exact match on the first problems of the validation set; nothing if the run is told to stop.
/// Collective.
template <class T>
std::optional<Accuracy> Trainer<T>::solve_problems() {
  return solve(workload_, deck_, data_.valid.problems,
               static_cast<std::size_t>(deck_.evaluation.problems), *data_.tokenizer, mesh_.data(),
               [this](std::size_t done, std::size_t all) {
                 log_.long_progress("step {}  problems: {} of {} solved", state_.step, done, all);
                 return stop_requested();
               });
}

/// Records the accuracy as metrics, and writes a page of solutions.
template <class T>
void Trainer<T>::show(const Accuracy& accuracy, report::Values& values) {
  const answer::Interval interval = answer::wilson(accuracy.correct, accuracy.problems);
  values.emplace_back("val/exact_match", accuracy.exact_match());
  values.emplace_back("val/exact_match_low", interval.low);
  values.emplace_back("val/exact_match_high", interval.high);
  values.emplace_back("val/well_formed", static_cast<double>(accuracy.well_formed) /
                                             static_cast<double>(accuracy.problems));
  log_.row_text(state_.step, "{}", summary(accuracy));
  if (log_.details())
    log_.row_text(state_.step, "problems answered in {:.1f} s", accuracy.sampling.seconds);
  keep_samples(
      fmt::format("step {}: {}\n{}", state_.step, summary(accuracy), page(accuracy.shown)));
  if (!at_end()) return;
  std::vector<Solution> solved;
  for (const Solution& solution : accuracy.shown)
    if (solution.correct && solved.size() < 2) solved.push_back(solution);
  log_.result("{}", page(solved.empty() ? accuracy.shown : solved));
}

template <class T>
void Trainer<T>::write_samples() {
  if (!data_.tokenizer || !workload_.writer) return;
  std::string page = fmt::format("step {}\n", state_.step);
  for (const Continuation& text :
       campaign::write_samples(workload_, deck_, *data_.tokenizer, deck_.generation.prompt))
    page += fmt::format("---\n{}{}{}\n", deck_.generation.prompt, text.text, note(text, deck_));
  keep_samples(page);
  if (at_end()) log_.result("sample at {}", page);
}

/// Writes samples.txt; a page that the disk refuses is tried again at the end.
template <class T>
void Trainer<T>::keep_samples(std::string page) {
  if (world_.rank() != 0) return;
  if (metrics_) metrics_->show(state_.step, "val/samples", page);
  samples_ = replace_file(directory_.samples(), page) ? std::string() : std::move(page);
}

#define INSTANTIATE(T) template void Trainer<T>::evaluate();
INSTANTIATE(float)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::campaign
