/// report.html and *.svg of a run directory: headline figures, the verdict (verdict.json, if any), curves
/// of metrics.jsonl, the samples (samples.txt, if any), the last values, the end of the log and the
/// deck. Self-contained HTML, light and dark. gnuplot draws still pictures, which the plotting library
/// dygraphs, embedded in the page, replaces by charts where scripts run.
#pragma once
#include <filesystem>

#include "base/log.hpp"

namespace tern::report {

/// Constructed once per run by rank 0 and kept, so that a missing gnuplot is reported once.
class Report {
 public:
  Report(std::filesystem::path run_directory, Log& log);

  /// Rebuilds the files from the directory's current contents; each is renamed into place. Never
  /// throws: a missing part (gnuplot, disk space, metrics) is a warning, and the report lacks it.
  /// Takes about a second; a gnuplot that hangs is killed.
  void make();

 private:
  std::filesystem::path directory_;
  Log& log_;
  bool warned_ = false;
};

/// Report::make once, for an existing run directory.
void make_report(const std::filesystem::path& run_directory, Log& log);
/// Likewise, with warnings to the console.
void make_report(const std::filesystem::path& run_directory);

}  // namespace tern::report
