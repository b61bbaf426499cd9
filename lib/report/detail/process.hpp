#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace tern::report::detail {

enum class Ending { success, failed, not_found, timed_out };

/// Limits of a child process, independent of how busy the machine is: the processor time that it may use,
/// and how long it may use none at all.
struct Limit {
  std::chrono::milliseconds processor, idle;
};

/// Runs a program found in PATH, without a shell, in `folder` or this process's directory; its
/// output goes to `output_file`. Killed at its limit.
Ending run_program(const std::vector<std::string>& command,
                   const std::filesystem::path& output_file, const Limit& limit,
                   const std::filesystem::path& folder = {});

}  // namespace tern::report::detail
