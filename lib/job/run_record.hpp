/// Who runs what, where and since when, and how it ended: the head of the log, and run.json in the
/// run's directory, from which the report takes its head.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "comm/comm.hpp"
#include "deck/deck.hpp"

namespace tern::job {

struct RunRecord {
  std::string program, commit;  // "tern 0.1.0", "222ff02"
  std::string task, name;
  std::string started;  // "2026-11-22 13:50:03 UTC"
  std::string host;     // of the first rank
  std::string device;   // "NVIDIA H200", "OpenMP on Intel(R) Xeon(R) Processor"
  std::string waits;    // of OpenMP's threads; empty if there is one
  int ranks = 1, ranks_a_host = 1, threads = 1;
  std::string model, batch, precision;  // in words, once planned
  std::int64_t steps = 0;               // that were asked for
  std::optional<int> exit_code;         // once ended
  std::string ended;                    // when

  /// Of the process that calls it. Local.
  static RunRecord of(const deck::Deck& deck, const comm::Session& session);
  /// With what is known once the run is planned: the whole model's parameters, sequences of a
  /// step, and steps (0: the deck's).
  void add(const deck::Deck& deck, std::size_t parameters, std::int64_t global, std::int64_t steps);
  void end(int code);

  /// "2 ranks x 8 threads, OpenMP on ..."
  std::string place() const;
  /// Two lines for the log.
  std::string head() const;
  /// "finished", "stopped by a signal or the job's time limit (exit code 75)"; `step`: the last.
  std::string ending(std::int64_t step) const;
};

/// As run.json, replaced whole. False if the disk refuses it.
bool write_run_record(const std::filesystem::path& run_directory, const RunRecord& record);
/// Nothing if there is none, or none that can be read.
std::optional<RunRecord> read_run_record(const std::filesystem::path& run_directory);

}  // namespace tern::job
