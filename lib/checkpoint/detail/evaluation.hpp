/// evaluation.json in a checkpoint's folder: attributes that its evaluation changed, by name.
///
///     {"step": 200, "best_loss": 2.5, "best_step": 200, "val/loss": 2.5, ...}
///
/// Numbers round-trip exactly; non-finite ones are null and not read back.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tern::checkpoint::detail {

constexpr const char* evaluation_file = "evaluation.json";

/// Written durably: fsynced and renamed into place. Throws FileError.
void write_evaluation(const std::filesystem::path& folder, std::int64_t step,
                      const std::map<std::string, double>& numbers);

/// Empty if the file is missing, damaged or of another step: the checkpoint then counts as not
/// evaluated.
std::map<std::string, double> read_evaluation(const std::filesystem::path& folder,
                                              std::int64_t step);

}  // namespace tern::checkpoint::detail
