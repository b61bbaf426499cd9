/// Metrics of a run: metrics.jsonl, one JSON object per line, and the same for TensorBoard.
///
///     {"step": 100, "time": 1760000000.25, "train/loss": 4.5, ..., "samples_hash": "91c0..."}
///
/// `time` is Unix seconds. Names: train/loss, train/throughput (tokens/s), train/mfu,
/// train/grad_norm, train/lr, val/loss, system/process_memory (bytes), ... (rank_usage.hpp).
/// Numbers that are not finite are written as null. Steps do not decrease; an evaluation at a
/// logged step has its own line.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "report/detail/kept_file.hpp"
#include "report/tensorboard.hpp"

namespace tern::report {

using Values = std::vector<std::pair<std::string, double>>;
using Texts = std::vector<std::pair<std::string, std::string>>;

/// Owned by rank 0.
class Metrics {
 public:
  /// Appends to the files of `run_directory`, which exists. Entries beyond `resume_step` are
  /// dropped first (those steps are repeated), as are a truncated last line and, unless
  /// `evaluated`, the evaluation of that step; a negative step, as at the start of a run, keeps
  /// nothing. Of `unwritten`, what unwritten() was at the checkpoint, the lines that the file lacks
  /// are added. TensorBoard gets the directory's deck.in, if any, as a text and as settings. Throws
  /// UserError if the files cannot be written.
  Metrics(std::filesystem::path run_directory, std::int64_t resume_step, bool evaluated = true,
          const std::string& unwritten = {});

  /// One line and one event, readable by others at once. Texts (such as the hash of the step's
  /// samples) go to the line only.
  void write(std::int64_t step, const Values& values, const Texts& texts = {});

  /// A text for TensorBoard only, such as samples.
  void show(std::int64_t step, const std::string& tag, const std::string& text);

  /// Writes what the disk refused before, and flushes to disk (fsync). True if metrics.jsonl is
  /// complete.
  bool sync();

  /// Lines that the disk has refused so far, in their order; 1 MiB at most. They are written before
  /// the next line, at the next sync(), or, stored in a checkpoint, when the run resumes from it.
  const std::string& unwritten() const { return file_.refused(); }
  /// False if TensorBoard's file, a copy of the metrics, lacks an event.
  bool events_complete() const { return events_complete_; }

 private:
  detail::KeptFile file_;
  EventWriter events_;
  bool events_complete_ = true;
};

}  // namespace tern::report
