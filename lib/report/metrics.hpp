/// The numbers of a run: metrics.jsonl, one JSON object a line, and the same for TensorBoard.
///
///     {"step": 100, "time": 1760000000.25, "train/loss": 4.5, ..., "samples_hash": "91c0..."}
///
/// `time` is Unix seconds. Names are those of the design (train/loss, train/throughput in tokens/s,
/// train/mfu, train/grad_norm, train/lr, val/loss, system/gpu_memory_allocated in bytes, ...). A
/// number that is not finite is written as null, since JSON has none. Steps do not decrease; an
/// evaluation at a logged step is a line of its own.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/append_file.hpp"
#include "report/tensorboard.hpp"

namespace tern::report {

using Values = std::vector<std::pair<std::string, double>>;
using Texts = std::vector<std::pair<std::string, std::string>>;

/// Owned by rank 0.
class Metrics {
 public:
  /// Appends to the files of `run_directory`, which exists. What was written beyond `resume_step`
  /// is dropped first (those steps are done again), as is a last line cut off by a kill, and,
  /// unless that step was `evaluated`, its evaluation; below 0, as where a run starts, nothing is
  /// kept. TensorBoard gets the directory's deck.in, if there is one, as a text. Throws UserError
  /// if the files cannot be written.
  Metrics(std::filesystem::path run_directory, std::int64_t resume_step, bool evaluated = true);

  /// One line and one event, readable at once by others. Texts (such as the hash of the step's
  /// samples) go to the line only.
  void write(std::int64_t step, const Values& values, const Texts& texts = {});

  /// Puts what was written on the disk, where it outlives the machine.
  void sync();

  /// False once the disk refused an entry, which is then lost whole; its owner may say so, and
  /// continue.
  bool complete() const { return complete_; }

 private:
  AppendFile file_;
  EventWriter events_;
  bool complete_ = true;
};

}  // namespace tern::report
