#include "base/wait_policy.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace tern {
namespace {

constexpr const char* users_choice[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME",
                                        "KMP_LIBRARY"};
constexpr const char* spin_count = "3000";    // GCC's runtime: about 60 us
constexpr const char* block_time = "0";       // LLVM's and Intel's runtimes, ms
constexpr const char* mark = "TERN_WAITING";  // set in the environment of the re-executed program

/// Threads of a parallel loop; 0 if no OpenMP runtime is loaded. Looked up at run time, so that
/// programs without OpenMP link.
int threads() {
  using Count = int (*)();
  const auto count = reinterpret_cast<Count>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  return count ? count() : 0;
}

std::string chosen_by_user() {
  std::string all;
  for (const char* name : users_choice)
    if (const char* value = std::getenv(name))
      all += fmt::format("{}{}={}", all.empty() ? "" : " ", name, value);
  return all;
}

/// Command line of this process, including an explicit dynamic loader.
std::vector<std::string> command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(in, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

/// Re-executes the program; returns only on failure.
void start_again() {
  std::vector<std::string> arguments = command_line();
  std::error_code unknown;
  auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (arguments.empty() || unknown) return;
  if (!std::filesystem::exists(program, unknown)) program = "/proc/self/exe";  // replaced since
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
}

}  // namespace

void choose_wait_policy() {
  if (std::getenv(mark) || threads() < 2 || !chosen_by_user().empty()) return;
  ::setenv("GOMP_SPINCOUNT", spin_count, 1);
  ::setenv("KMP_BLOCKTIME", block_time, 1);
  ::setenv(mark, "chosen", 1);
  start_again();
  for (const char* name : {"GOMP_SPINCOUNT", "KMP_BLOCKTIME", mark}) ::unsetenv(name);
}

std::string wait_policy() {
  if (threads() < 2) return {};
  if (std::getenv(mark)) return fmt::format("spin {} times, then sleep", spin_count);
  const std::string chosen = chosen_by_user();
  return chosen.empty() ? "the runtime's default" : chosen;
}

}  // namespace tern
