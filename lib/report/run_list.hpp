/// Runs of a folder, for `trainer --list FOLDER`.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "report/compared_run.hpp"

namespace tern::report {

struct ListedRun {
  std::string directory;             // as the folder was named
  std::string state;                 // "finished", "running", "interrupted", ...
  std::int64_t step = 0, steps = 0;  // the last one logged; of the whole run, 0: not known
  double loss = unknown;             // val/loss of the last evaluation
  double best = unknown;             // the lowest one after step 0,
  std::int64_t best_step = 0;        // and its step
  double seconds = unknown;          // system/seconds
  double last_time = 0;              // of the last line of metrics.jsonl, Unix seconds; 0: none
};

/// "running", "finished", ...: of run.json, metrics.jsonl and the lock. A run that has just recorded
/// its end counts as ended although it still holds the lock.
std::string state(const std::filesystem::path& directory);

/// Whether the directory has run.json or metrics.jsonl.
bool is_run(const std::filesystem::path& directory);

/// The folder itself if it is a run, else those directly in it, by name. From run.json,
/// metrics.jsonl and the lock; what is missing or damaged is left unknown.
std::vector<ListedRun> runs_in(const std::filesystem::path& folder);

/// Cells of a run's line, under "run", "state", "step", "validation loss", "best", "time" and "last line
/// (UTC)".
std::vector<std::string> cells_of(const ListedRun& run);
/// A line per run under a line of titles.
std::string table(const std::vector<ListedRun>& runs);

}  // namespace tern::report
