#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace tern::report::detail {

enum class Ending { success, failed, not_found, timed_out };

/// Runs a program found in PATH, without a shell, in `folder` or this process's directory; its
/// output goes to `output_file`. Killed after `limit`.
Ending run_program(const std::vector<std::string>& command,
                   const std::filesystem::path& output_file, std::chrono::milliseconds limit,
                   const std::filesystem::path& folder = {});

}  // namespace tern::report::detail
