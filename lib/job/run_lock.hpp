/// Mutual exclusion of processes in a run directory.
#pragma once
#include <filesystem>
#include <string>

namespace tern::job {

/// Lock on DIRECTORY/.lock, which records its owner: host, process, start of the process, Slurm
/// job. The kernel releases it however the process ends, so a leftover file blocks nobody. On file
/// systems without locks the recorded owner decides: a process of this host that has ended, or an
/// earlier start of the same Slurm job, no longer owns it.
class RunLock {
 public:
  RunLock() = default;
  /// `directory` must exist. Throws UserError if another process owns it, naming the owner, or if
  /// the file cannot be written. Waits a few seconds for an owner that is ending, and up to two
  /// minutes for the lock of one that has ended. Local; rank 0 only.
  explicit RunLock(const std::filesystem::path& directory);
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;

 private:
  int descriptor_ = -1;
};

/// Whether a process owns the lock of the directory; false if that cannot be found out. Changes
/// nothing and does not wait.
bool in_use(const std::filesystem::path& directory);

}  // namespace tern::job
