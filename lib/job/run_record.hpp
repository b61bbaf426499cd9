/// Record of a run: program, task, host, start and end. Printed at the head of the log and stored
/// as run.json in the run directory, from which the report takes its head.
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
  std::string host;     // of rank 0, and of others (comm::Hosts::text)
  std::string device;   // "NVIDIA H200", "OpenMP on Intel(R) Xeon(R) Processor"
  std::string waits;    // OpenMP wait policy; empty with one thread
  int ranks = 1, ranks_per_host = 1, threads = 1;  // largest number of ranks on one host
  std::string model, batch, precision;             // in words, once planned
  std::int64_t steps = 0;                          // requested
  std::optional<int> exit_code;                    // once ended
  std::string ended;                               // time

  /// Record of the job that started now. Collective over all ranks.
  static RunRecord of(const deck::Deck& deck, const comm::Session& session);
  /// Adds what the plan determines: parameters of the whole model, contents of a step (in
  /// words), and steps (0: the deck's).
  void add(const deck::Deck& deck, std::size_t parameters, const std::string& of_step,
           std::int64_t steps);
  void end(int code);

  /// "2 ranks x 8 threads, OpenMP on ..."
  std::string place() const;
  /// Two lines for the log, or with `waits` three.
  std::string head() const;
  /// "finished", "stopped by a signal or the job's time limit (exit code 75)"; `step`: last step.
  std::string ending(std::int64_t step) const;
};

/// Replaces run.json. False if it cannot be written.
bool write_run_record(const std::filesystem::path& run_directory, const RunRecord& record);
/// nullopt if run.json is missing or unreadable.
std::optional<RunRecord> read_run_record(const std::filesystem::path& run_directory);

}  // namespace tern::job
