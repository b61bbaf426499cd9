#include "campaign/training/trainer.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/files.hpp"
#include "campaign/training/loss_scale.hpp"
#include "campaign/training/resumption.hpp"
#include "comm/text.hpp"
#include "comm/waits.hpp"
#include "deck/changes.hpp"
#include "deck/choices.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"
#include "job/exit_code.hpp"
#include "job/options.hpp"
#include "optimizer/schedule.hpp"
#include "plan/step_contents.hpp"
#include "weights/weights.hpp"
#include "words/numbers.hpp"
#include "workload/implementations.hpp"

namespace tern::campaign {
namespace {

// Reserve before Slurm ends the job, in addition to the time of steps and checkpoints.
constexpr double min_margin_seconds = 10;
constexpr double assumed_write_rate = 5e8;  // bytes/s, until the first checkpoint is written

std::size_t threads_of(const deck::Deck& deck) {
  return static_cast<std::size_t>(deck.data.threads);
}

}  // namespace

template <class T>
Trainer<T>::Trainer(const job::Options& options, const plan::Plan& plan,
                    const job::RunDirectory& directory, TrainingData data, const comm::Mesh& mesh,
                    int local_rank, Log& log)
    : plan_(plan),
      deck_(plan_.deck),
      layout_(plan_.layout),
      directory_(directory),
      mesh_(mesh),
      world_(mesh.world()),
      log_(log),
      data_(std::move(data)),
      arena_(plan.total_bytes),
      workload_(deck_, layout_, mesh, arena_),
      meter_(local_rank),
      phases_([this] { workload_.context.fence("phase"); }),
      checkpoints_(workload_, deck_, directory.checkpoints(), mesh, phases_, log),
      timed_(deck::timed(deck_.campaign)),
      peak_tflops_(deck::kind_of(deck_).diffuses ? std::nullopt : plan::peak_tflops(deck_)),
      left_(deck_),
      clock_(options.clock) {
  TERN_REQUIRE(arena_.bytes() == plan.total_bytes, "planned {} bytes, allocated {}",
               plan.total_bytes, arena_.bytes());
  workload_.prepare(log_);
  log_.line("{}", workload::implementations_text(deck_, layout_, workload_));
  start_parameters(options.resume);
  open_reader();
  if (world_.rank() == 0) {
    metrics_.emplace(directory_.path, resumed_ ? state_.step : -1,
                     state_.evaluated_step == state_.step, unwritten_lines_);
    report_.emplace(directory_.path, log_);
    warn_of_space();
  }
}

/// Newest good checkpoint, found by rank 0 and broadcast, so that all ranks open the same.
template <class T>
std::optional<checkpoint::Reader> Trainer<T>::open_agreed_checkpoint() {
  std::optional<checkpoint::Reader> newest;
  std::string path;
  if (world_.rank() == 0) {
    if (auto found = checkpoint::open_newest(directory_.checkpoints(), log_)) {
      path = found->path().string();
      newest.emplace(std::move(*found));
    }
  }
  path = comm::broadcast_text(std::move(path), world_);
  if (!newest && !path.empty()) newest.emplace(path);
  return newest;
}

template <class T>
void Trainer<T>::start_parameters(bool resume) {
  const comm::LongWait files;
  const ops::Context& context = workload_.context;
  auto newest = resume ? open_agreed_checkpoint() : std::nullopt;
  if (resume && !newest)
    log_.line("nothing to resume in {}: starting from scratch", directory_.path.string());
  if (newest)
    resume_from(*newest);
  else
    initialize_parameters();
  workload_.parameters.refresh_compute(context);
  workload_.optimizer->gather_parameters(context);
  context.fence("parameters ready");
  world_.barrier();
}

template <class T>
void Trainer<T>::resume_from(const checkpoint::Reader& newest) {
  const checkpoint::Header& header = newest.header();
  state_ = from_header(header);
  clock_.resume(state_);
  require_same_model(header);
  checkpoints_.load(newest, state_);
  workload_.objective->restore(header.numbers);
  log_.line("resumed from {} (step {}, {})", newest.path().string(), state_.step,
            token_count(state_.tokens));
  started_at_ = state_.step;
  resumed_ = true;
  unwritten_lines_ = unwritten_metrics(header);
}

template <class T>
void Trainer<T>::initialize_parameters() {
  const ops::Context& context = workload_.context;
  const bool partly = deck::loads_matching(deck_.model);
  if (deck_.model.load.empty() || partly)
    workload_.parameters.initialize(context, workload_.tree,
                                    static_cast<std::uint64_t>(deck_.campaign.seed));
  if (!deck_.model.load.empty())
    weights::load_weights(workload_.context, workload_.tree, deck_.model, workload_.parameters,
                          deck_.model.load, log_,
                          partly ? weights::Tensors::matching : weights::Tensors::all);
  workload_.optimizer->start_average(context);
}

/// Equal shapes do not make the same model, nor the same run.
template <class T>
void Trainer<T>::require_same_model(const checkpoint::Header& header) {
  const deck::DeckChanges changes = deck::changes_of(header.deck, deck_);
  if (!changes.readable)
    log_.warning("the deck in the checkpoint is not readable by this version: not compared");
  if (!changes.model.empty())
    user_error(
        "the checkpoint of step {} in {} is of another model than the deck's:\n{}\nrestore these "
        "values, or set another &output directory for a new run",
        header.step, directory_.checkpoints().string(), deck::text_of(changes.model));
  if (!changes.others.empty())
    log_.line("resumed with another deck than the checkpoint's:\n{}",
              deck::text_of(changes.others));
  const std::string jump = changes.readable ? rate_jump(changes.before, deck_, state_) : "";
  if (!jump.empty()) log_.line("{}", jump);
}

/// Warns of a full disk before the first step rather than at the last.
template <class T>
void Trainer<T>::warn_of_space() const {
  std::error_code error;
  const auto space = std::filesystem::space(directory_.checkpoints(), error);
  if (error) return;
  const std::string shortage =
      job::shortage_of_space(space.available, plan_.checkpoint_bytes, deck_.checkpoint,
                             checkpoint::count(directory_.checkpoints()));
  if (!shortage.empty()) log_.warning("{}: {}", directory_.checkpoints().string(), shortage);
}

template <class T>
void Trainer<T>::open_reader() {
  data::ReaderOptions options{layout_.per_rank, layout_.tokens};
  options.seed = static_cast<std::uint64_t>(deck_.campaign.seed);
  options.threads = threads_of(deck_);
  options.depth = std::max<std::size_t>(4, options.threads);
  options.accumulation = layout_.accumulation;
  options.steps = layout_.steps;
  reader_ = std::make_unique<data::Reader>(
      *data_.train.source, options, static_cast<std::size_t>(mesh_.data().rank()),
      static_cast<std::size_t>(mesh_.data().size()),
      static_cast<std::uint64_t>(state_.step) * layout_.accumulation);
}

template <class T>
int Trainer<T>::run() {
  log_.line("training {:.2f} M parameters on {}, in rows of {} positions",
            static_cast<double>(plan_.parameters) / 1e6, counted(world_.size(), "rank"),
            layout_.tokens);
  log_.line("{}", plan::updates_text(plan_));
  log_.line("train: {}", data_.train.summary);
  log_.line("valid: {}", data_.valid.summary);
  warn_of_verdict(deck_, log_);
  begin_table();
  stop_ = reason_to_stop();
  // Evaluation of step 0, or one that a kill interrupted.
  if (stop_ == Stop::none && due(deck_.evaluation.every)) evaluate();
  if (stop_ == Stop::none) stop_ = reason_to_stop();
  while (stop_ == Stop::none) {
    step();
    if (stop_ == Stop::none && due(deck_.evaluation.every)) evaluate();
    if (stop_ == Stop::none && due(deck_.checkpoint.every)) save();
    if (stop_ == Stop::none) stop_ = reason_to_stop();
  }
  const Kept kept = finish(stop_);
  if (stop_ == Stop::diverged) return job::diverged;
  if (!kept.last || kept.lost_best) return job::not_saved;
  if (stop_ == Stop::interrupted) return job::interrupted;
  if (!kept.records) return job::not_saved;
  return conclude() ? job::finished : job::verdict_failed;
}

template <class T>
void Trainer<T>::step() {
  phases_.begin_step(on_host || state_.step % 50 == 10);  // fences slow a GPU's step down
  const Timer timer;
  const std::int64_t number = state_.step + 1;
  const double rate = rate_of(number);
  std::optional<profile::Profile> profile;
  if (number == deck_.output.profile)
    profile.emplace([this] { workload_.context.fence("profile"); });
  const StepContext<T> context{workload_, deck_, layout_, mesh_, *reader_, phases_};
  StepResult result =
      train_step(context, {number, state_.updates, rate, loss_scale_of(deck_.precision, state_)});
  if (profile) write(*profile);
  auto hash = static_cast<std::int64_t>(result.samples_hash);
  mesh_.data().all_reduce(&hash, 1, comm::Sum::sum);
  result.samples_hash = static_cast<std::uint64_t>(hash);

  state_.step = number;
  state_.tokens += result.counts.data_tokens;
  state_.samples_hash += result.samples_hash;
  if (result.applied) ++state_.updates;
  const double seconds = timer.seconds();
  progressed_ = true;
  longest_step_ = std::max(longest_step_, seconds);
  left_.step(seconds,
             static_cast<double>(layout_.steps.of(static_cast<std::uint64_t>(number - 1))));
  interval_.add(seconds, result);
  show_progress(result, seconds);
  watch(result);
  if (due(deck_.output.log_every) || number == deck_.campaign.max_steps || number == 1)
    log_step(result, rate);
  else if (starting_up())
    interval_.restart();
}

/// Learning rate of a step. Clocks differ: that of rank 0 counts. Collective.
template <class T>
double Trainer<T>::rate_of(std::int64_t step) {
  double seconds = clock_.seconds();
  if (timed_) world_.broadcast(&seconds, sizeof seconds, 0);
  if (timed_ && step > deck_.optimizer.warmup_steps && state_.warmup_seconds == 0)
    state_.warmup_seconds = seconds;
  return optimizer::learning_rate(deck_, step, seconds, state_.warmup_seconds);
}

template <class T>
void Trainer<T>::watch(const StepResult& result) {
  if (result.applied && std::isfinite(result.loss)) {
    state_.skipped_in_row = 0;
    if (grow_loss_scale(deck_.precision, state_))
      log_.row_text(state_.step, "loss scale doubled to {:.0f}", state_.loss_scale);
    if (spikes_.is_spike(result.loss))
      log_.warning(
          "step {}: loss {:.4f} is a spike; the mean so far is {:.4f}, the gradient norm {:.3g}",
          state_.step, result.loss, spikes_.mean(), result.gradient_norm);
    return;
  }
  if (!result.applied && shrink_loss_scale(deck_.precision, result.loss, state_))
    return log_.row_text(state_.step,
                         "gradients overflow fp16: step skipped, loss scale halved to {:.0f}",
                         state_.loss_scale);
  ++state_.skipped;
  ++state_.skipped_in_row;
  log_.warning(
      "step {}: loss {} and gradient norm {} are not finite: step skipped ({} in a row, {} in all)",
      state_.step, result.loss, result.gradient_norm, state_.skipped_in_row, state_.skipped);
  if (state_.skipped_in_row >= deck_.output.skip_limit) stop_ = Stop::diverged;
}

template <class T>
Stop Trainer<T>::reason_to_stop() {
  if (!timed_ && state_.step >= deck_.campaign.max_steps) return Stop::steps;
  if (const Stop satisfied = stop_of(deck_.evaluation, state_); satisfied != Stop::none)
    return satisfied;
  if (stop_requested()) return Stop::interrupted;
  const bool late = clock_.seconds() > 3600 * deck_.campaign.max_hours;
  const bool limited = deck_.campaign.max_hours > 0 && state_.step > 0;
  return world_.any(limited && late) ? Stop::hours : Stop::none;
}

/// Whether a signal or the end of the job's time asks for a stop. Clocks and signals differ between
/// ranks: if one rank stops, all do. Collective.
template <class T>
bool Trainer<T>::stop_requested() {
  const double margin = margin_seconds(), left = interrupt_.seconds_left();
  std::int64_t told[2] = {interrupt_.signalled() ? 1 : 0, left < margin ? 1 : 0};
  world_.all_reduce(told, 2, comm::Sum::max);
  if (told[0] == 0 && told[1] == 0) return false;
  if (told[0] == 0 && !progressed_)  // a requeued job would get no further
    user_error(
        "{:.0f} s of the job are left, and a step and a checkpoint of {:.3g} GiB may take {:.0f}: "
        "ask for more time (sbatch --time)",
        left, static_cast<double>(plan_.checkpoint_bytes) / (1 << 30), margin);
  stop_reason_ = interrupt_.reason();
  log_.row_text(state_.step, "{}: the run ends here", stop_reason_);
  return true;
}

/// Seconds of a job's time reserved for the work in progress and the last checkpoint, which waits
/// for the one being written.
template <class T>
double Trainer<T>::margin_seconds() const {
  const double planned = static_cast<double>(plan_.checkpoint_bytes) / assumed_write_rate;
  const double write = checkpoints_.write_seconds() > 0 ? checkpoints_.write_seconds() : planned;
  return min_margin_seconds + 2 * longest_step_ + longest_save_ + 2 * write;
}

template class Trainer<float>;
template class Trainer<bf16>;
template class Trainer<fp16>;

}  // namespace tern::campaign
