/// The training loop.
#pragma once
#include <optional>

#include "campaign/data_set.hpp"
#include "campaign/evaluation.hpp"
#include "campaign/problems.hpp"
#include "campaign/training/checkpoints.hpp"
#include "campaign/training/ending.hpp"
#include "campaign/training/interval.hpp"
#include "campaign/training/run_clock.hpp"
#include "campaign/training/step.hpp"
#include "campaign/training/time_left.hpp"
#include "campaign/training/watch.hpp"
#include "job/interrupt.hpp"
#include "job/options.hpp"
#include "job/run_directory.hpp"
#include "plan/plan.hpp"
#include "profile/profile.hpp"
#include "report/report.hpp"

namespace tern::campaign {

template <class T>
class Trainer {
 public:
  /// Allocates everything, and loads or initializes the parameters. `plan`: its deck has per_rank
  /// resolved. Collective.
  Trainer(const job::Options& options, const plan::Plan& plan, const job::RunDirectory& directory,
          TrainingData data, const comm::Mesh& mesh, int local_rank, Log& log);

  /// Trains until there is a reason to stop; returns the exit code. Collective.
  int run();

 private:
  // Before the loop.
  std::optional<checkpoint::Reader> open_agreed_checkpoint();
  void start_parameters(bool resume);
  void resume_from(const checkpoint::Reader& newest);
  void initialize_parameters();
  void require_same_model(const checkpoint::Header& header);
  void open_reader();
  void warn_of_space() const;

  // Within it, in this order.
  void step();
  void write(profile::Profile& profile);
  double rate_of(std::int64_t step);
  void watch(const StepResult& result);
  void log_step(const StepResult& result, double rate);
  void begin_table();
  std::string left_text() const;
  void show_progress(const StepResult& result, double seconds);
  /// Whether the latest step is the first of this start: slow, and no part of a rate.
  bool starting_up() const { return state_.step == started_at_ + 1; }
  report::RankUsage usage_of_ranks();
  report::Values values_of(const StepResult& result, double rate, const report::RankUsage& ranks);
  void name_slowest(const report::RankUsage& ranks);
  void evaluate();
  bool take_in(const objective::Score& result);
  std::optional<Accuracy> solve_problems();
  void show(const Accuracy& accuracy, report::Values& values);
  void write_samples();
  void keep_samples(std::string page);
  void save();
  void warn_of_unwritten();
  void account() { clock_.account(state_, meter_, world_); }
  Stop reason_to_stop();
  bool stop_requested();
  double margin_seconds() const;

  // After it.
  Kept finish(Stop stop);
  Kept keep_all();
  void log_usage();
  bool conclude();
  /// Null except on rank 0.
  report::Metrics* metrics() { return metrics_ ? &*metrics_ : nullptr; }
  /// Whether the evaluation in progress is the last.
  bool at_end() const {
    return ending_ || stop_ != Stop::none || (!timed_ && state_.step >= deck_.campaign.max_steps);
  }
  bool due(std::int64_t every) const { return every > 0 && state_.step % every == 0; }

  plan::Plan plan_;
  const deck::Deck& deck_;  // the plan's
  const workload::Layout& layout_;
  job::RunDirectory directory_;
  const comm::Mesh& mesh_;
  comm::Group& world_;
  Log& log_;
  TrainingData data_;
  Arena arena_;
  workload::Workload<T> workload_;
  TrainState state_;
  profile::DeviceMeter meter_;
  profile::Phases phases_;
  Checkpoints<T> checkpoints_;
  std::optional<report::Metrics> metrics_;  // rank 0 only
  std::optional<report::Report> report_;
  std::unique_ptr<data::Reader> reader_;
  job::Interrupt interrupt_;
  SpikeDetector spikes_;
  bool timed_;  // wall time ends the run
  std::optional<double> peak_tflops_;

  Stop stop_ = Stop::none;
  bool ending_ = false;  // no step follows
  std::string stop_reason_;
  bool resumed_ = false;
  bool progressed_ = false;      // a step or evaluation since the start: worth saving
  std::int64_t started_at_ = 0;  // step from which this start continues
  TimeLeft left_;
  RunClock clock_;
  double longest_step_ = 0, longest_save_ = 0;  // seconds
  Interval interval_;            // since the last logged step, or the first of this start
  std::vector<double> rates_;    // tokens/s of the logged steps
  std::string unwritten_lines_;  // of metrics.jsonl, stored in the checkpoint resumed from
  std::string samples_;          // that the disk has refused
  bool warned_of_unwritten_ = false;
};

}  // namespace tern::campaign
