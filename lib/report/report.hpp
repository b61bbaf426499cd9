/// report.html and *.svg of a run directory: the verdict of verdict.json if there, curves of
/// metrics.jsonl drawn by gnuplot, a table of the last values, the deck, and the samples of
/// samples.txt if there. One file, no network, light and dark.
#pragma once
#include <filesystem>

#include "base/log.hpp"

namespace tern::report {

/// Made once a run by rank 0 and kept, so that a missing gnuplot is said once.
class Report {
 public:
  Report(std::filesystem::path run_directory, Log& log);

  /// Makes the files anew from what the directory holds now; each becomes visible by a rename.
  /// Never throws: what is missing (gnuplot, disk, metrics) is a warning, and the report has less
  /// in it. Takes about a second; gnuplot is ended after 30 seconds.
  void make();

 private:
  std::filesystem::path directory_;
  Log& log_;
  bool warned_ = false;
};

/// The same once, for a run directory found later.
void make_report(const std::filesystem::path& run_directory, Log& log);
/// The same with warnings to the console.
void make_report(const std::filesystem::path& run_directory);

}  // namespace tern::report
