/// The training loop.
#pragma once
#include <optional>

#include "base/log.hpp"
#include "base/timer.hpp"
#include "campaign/campaign.hpp"
#include "campaign/data_set.hpp"
#include "campaign/evaluation.hpp"
#include "campaign/problems.hpp"
#include "campaign/state.hpp"
#include "campaign/step.hpp"
#include "campaign/time_left.hpp"
#include "campaign/watch.hpp"
#include "campaign/writer.hpp"
#include "deck/objective_kind.hpp"
#include "job/interrupt.hpp"
#include "job/options.hpp"
#include "job/run_directory.hpp"
#include "plan/plan.hpp"
#include "profile/device_usage.hpp"
#include "profile/profile.hpp"
#include "report/metrics.hpp"
#include "report/rank_usage.hpp"
#include "report/report.hpp"
#include "report/verdict.hpp"
#include "weights/snapshot.hpp"

namespace tern::campaign {

/// Attribute of a checkpoint: lines of metrics.jsonl that the disk has refused.
constexpr const char* unwritten_metrics = "unwritten_metrics";

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
  enum class Stop { none, steps, hours, target, patience, interrupted, diverged };
  /// What is on disk at the end.
  struct Kept {
    bool last = true;     // the last checkpoint, with what the records lack
    bool best = true;     // the best checkpoint
    bool records = true;  // metrics and evaluations
  };

  // Before the loop.
  std::optional<checkpoint::Reader> open_agreed_checkpoint();
  void start_parameters(bool resume);
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
  void begin_interval();
  /// Whether the latest step is the first of this start: slow, and no part of a rate.
  bool starting_up() const { return state_.step == started_at_ + 1; }
  report::RankUsage usage_of_ranks();
  void name_slowest(const report::RankUsage& ranks);
  void evaluate();
  bool take_in(const objective::Score& result);
  std::optional<Accuracy> solve_problems();
  void show(const Accuracy& accuracy, report::Values& values);
  void write_samples();
  void keep_samples(std::string page);
  void save();
  void retry_best();
  void warn_of_unwritten();
  void account();
  Stop satisfied() const;
  Stop reason_to_stop();
  bool stop_requested();
  double margin_seconds() const;

  // After it.
  Kept finish(Stop stop);
  Kept keep_all();
  bool save_at_last();
  bool complete_records();
  std::string summary_of_end(Stop stop, Kept kept) const;
  bool wait_for_checkpoint();
  bool conclude();
  report::Verdict judge_so_far();
  void warn_of_verdict() const;
  /// Whether the run ends with a verdict.
  bool judged() const { return deck::kind_of(deck_).judged; }
  /// Whether the evaluation in progress is the last.
  bool at_end() const {
    return ending_ || stop_ != Stop::none || (!timed_ && state_.step >= deck_.campaign.max_steps);
  }
  bool due(std::int64_t every) const { return every > 0 && state_.step % every == 0; }
  double cost(double seconds) const;

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
  weights::Snapshot<T> snapshot_;
  TrainState state_;
  checkpoint::Store store_;
  std::optional<report::Metrics> metrics_;  // rank 0 only
  std::optional<report::Report> report_;
  std::unique_ptr<data::Reader> reader_;
  profile::DeviceMeter meter_;
  profile::Phases phases_;
  job::Interrupt interrupt_;
  SpikeDetector spikes_;
  bool timed_;  // wall time ends the run
  std::optional<double> peak_tflops_;

  Stop stop_ = Stop::none;
  bool ending_ = false;  // no step follows
  std::string stop_reason_;
  std::int64_t saved_step_ = -1;
  std::int64_t lost_best_ = -1;  // step of a best checkpoint that the disk refused
  bool resumed_ = false;
  bool progressed_ = false;      // a step or evaluation since the start: worth saving
  std::int64_t started_at_ = 0;  // step from which this start continues
  TimeLeft left_;
  Timer clock_;  // this start; earlier starts:
  double earlier_seconds_ = 0, earlier_joules_ = 0;
  double longest_step_ = 0, longest_save_ = 0;  // seconds
  // Since the last logged step, or the first of this start: seconds in steps, seconds waited for data, counts of data read.
  double interval_seconds_ = 0, interval_wait_ = 0;
  data::Counts interval_;
  double logged_at_ = 0, logged_cpu_seconds_ = 0;  // clock and processor time of the last log line
  std::vector<double> rates_;                      // tokens/s of the logged steps
  std::string unwritten_lines_;  // of metrics.jsonl, stored in the checkpoint resumed from
  std::map<std::string, double> evaluation_;  // stored with the checkpoint of the evaluated step
  std::string samples_;                       // that the disk has refused
  bool warned_of_unwritten_ = false;
};

}  // namespace tern::campaign
