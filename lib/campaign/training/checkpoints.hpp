/// Checkpoints of a training run, written in the background. What the disk refuses is tried again.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "campaign/training/state.hpp"
#include "profile/phases.hpp"
#include "report/metrics.hpp"
#include "weights/snapshot.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {

/// Lines of metrics.jsonl that the disk had refused before this checkpoint was written.
std::string unwritten_metrics(const checkpoint::Header& header);

/// Functions are collective over all ranks, unless stated otherwise.
template <class T>
class Checkpoints {
 public:
  /// All are kept by reference. `folder`: of the checkpoints.
  Checkpoints(workload::Workload<T>& workload, const deck::Deck& deck,
              const std::filesystem::path& folder, const comm::Mesh& mesh, profile::Phases& phases,
              Log& log);

  /// Fills parameters and optimizer states from a checkpoint. `state`: its state.
  void load(const checkpoint::Reader& reader, const TrainState& state);
  /// Whether the state is the one of the last save. Local.
  bool holds(const TrainState& state) const { return saved_step_ == state.step; }
  /// No later checkpoint replaces the best one: if its write failed, it is tried again before its
  /// copy in memory is overwritten.
  void retry_best(const TrainState& state);
  /// Saves parameters and optimizer states with `state`. `metrics`: null except on rank 0; the
  /// checkpoint implies that its steps are logged, or holds their lines.
  void save(const TrainState& state, report::Metrics* metrics);
  /// Marks the checkpoint of state.step as evaluated, once it is on disk. Local.
  void evaluated(const TrainState& state, const std::map<std::string, double>& numbers, bool best);

  /// Waits for the last checkpoint; whether it is complete. The result is this rank's.
  bool wait();
  /// Waits, with one retry; whether it is on disk, the same on all ranks.
  bool complete();
  /// Writes what the disk has refused of metrics and evaluations; whether they are complete, the
  /// same on all ranks.
  bool complete_records(report::Metrics* metrics);
  /// Saves the last checkpoint once more, with what the records lack, for a resumed run to write.
  /// Whether it is on disk, the same on all ranks.
  bool save_again(const TrainState& state, report::Metrics* metrics);
  /// Step of the best checkpoint, if the disk refused it. Local.
  std::optional<std::int64_t> lost_best(const TrainState& state) const;
  /// Duration of the last finished write; 0 before the first. Local.
  double write_seconds() const { return store_.seconds(); }

 private:
  workload::Workload<T>& workload_;
  const deck::Deck& deck_;
  comm::Group& world_;
  profile::Phases& phases_;
  Log& log_;
  weights::Snapshot<T> snapshot_;
  checkpoint::Store store_;
  std::int64_t saved_step_ = -1;
  std::optional<std::int64_t> lost_best_;
  std::map<std::string, double> evaluation_;  // stored with the checkpoint of the evaluated step
};

}  // namespace tern::campaign
