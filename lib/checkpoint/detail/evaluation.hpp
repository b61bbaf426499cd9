/// evaluation.json in the folder of a checkpoint: what its evaluation changed, by name.
///
///     {"step": 200, "best_loss": 2.5, "best_step": 200, "val/loss": 2.5, ...}
///
/// Numbers keep every bit; one that is not finite is null, and is not read back.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tern::checkpoint::detail {

constexpr const char* evaluation_file = "evaluation.json";

/// Whole and on disk when it returns. Throws FileError.
void write_evaluation(const std::filesystem::path& folder, std::int64_t step,
                      const std::map<std::string, double>& numbers);

/// Empty where there is none, where it is of another step, and where it is damaged: then the
/// checkpoint counts as not evaluated.
std::map<std::string, double> read_evaluation(const std::filesystem::path& folder,
                                              std::int64_t step);

}  // namespace tern::checkpoint::detail
