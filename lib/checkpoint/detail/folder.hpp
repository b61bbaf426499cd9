/// The folder of a run's checkpoints:
///
///   step_00001000             visible: whole, on disk
///   step_00001000.tmp-TOKEN   being written; garbage after a crash
///   step_00001000.old-TOKEN   was visible, is being replaced by one of the same step; still whole,
///   and
///                             counts if the crash came before the new one was visible
///   step_00001000.del-TOKEN   being removed; garbage
///   best.txt                  name of the best one
///
/// Only rank 0 changes what is visible.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tern::checkpoint::detail {

/// "step_00001000"
std::string step_name(std::int64_t step);

struct Candidate {
  std::int64_t step;
  std::filesystem::path path;
};

/// Checkpoints to read, newest step first; one that is being replaced counts where the new one is
/// missing. None if the folder does not exist. Throws FileError if it cannot be read.
std::vector<Candidate> candidates(const std::filesystem::path& directory);

/// Puts a replaced checkpoint back whose successor never came, and removes the leftovers of earlier
/// crashes.
void recover(const std::filesystem::path& directory);

/// Makes `temporary` visible as `step`, in place of an earlier one of that step. Throws FileError.
void publish(const std::filesystem::path& directory, const std::filesystem::path& temporary,
             std::int64_t step);

/// Removes all visible ones up to `newest` but the last `keep` of them and the best one. Later
/// steps, which a run left that went back, stay. Each is renamed before its files go.
void retain(const std::filesystem::path& directory, std::int64_t newest, int keep);

/// The step that best.txt names.
std::optional<std::int64_t> best_step(const std::filesystem::path& directory);
void write_best(const std::filesystem::path& directory, std::int64_t step);

}  // namespace tern::checkpoint::detail
