/// One process at a time works in a run's directory.
#pragma once
#include <filesystem>
#include <string>

namespace tern::job {

/// A lock on DIRECTORY/.lock, which names its owner: host, process, start of the process, Slurm
/// job. The kernel releases it when the process ends in any way, so a file that is left behind
/// holds nobody up. Where the file system has no locks, the owner's name decides: a process of
/// this host that has ended, or an earlier start of the same Slurm job, is no owner any more.
class RunLock {
 public:
  RunLock() = default;
  /// `directory` exists. Throws UserError that names the owner if there is one, and if the file
  /// cannot be written. Local: for rank 0.
  explicit RunLock(const std::filesystem::path& directory);
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace tern::job
