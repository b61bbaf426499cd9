/// The folder of a run's checkpoints:
///
///   step_00001000             visible: complete and on disk
///   step_00001000.tmp-TOKEN   being written; garbage after a crash
///   step_00001000.old-TOKEN   complete, being replaced by one of the same step; valid as long as
///                             the new one is not visible
///   step_00001000.del-TOKEN   being removed; garbage
///   best.txt                  name of the best checkpoint
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

/// Checkpoints to read, newest step first, including an .old one whose successor is missing. Empty
/// if the folder does not exist. Throws FileError if it cannot be read.
std::vector<Candidate> candidates(const std::filesystem::path& directory);

/// Restores .old checkpoints whose successor is missing and removes leftovers of crashes.
void recover(const std::filesystem::path& directory);

/// Renames `temporary` into place as `step`, replacing an earlier one. Throws FileError.
void publish(const std::filesystem::path& directory, const std::filesystem::path& temporary,
             std::int64_t step);

/// Removes visible checkpoints up to step `newest` except the last `keep`, the one that best.txt
/// names and `best`. Steps beyond `newest` (the run was resumed from an earlier one) stay. Each is
/// renamed before removal.
void retain(const std::filesystem::path& directory, std::int64_t newest, int keep,
            std::optional<std::int64_t> best);

/// The step in best.txt; empty without the file, or if it names none. Throws FileError.
std::optional<std::int64_t> best_step(const std::filesystem::path& directory);
void write_best(const std::filesystem::path& directory, std::int64_t step);

}  // namespace tern::checkpoint::detail
