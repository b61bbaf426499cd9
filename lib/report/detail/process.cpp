#include "report/detail/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <thread>

extern char** environ;

namespace tern::report::detail {
namespace {

// posix_spawn, not fork: a process that holds a GPU and MPI must not be copied. The child starts
// with default signal handling, whatever the training loop has set.
int spawn(pid_t& child, const std::vector<std::string>& command, const std::string& folder,
          const std::string& output_file) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output_file.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int error =
      posix_spawnp(&child, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

/// Processor time that a process has used; zero if it has ended.
std::chrono::nanoseconds used_by(pid_t child) {
  clockid_t clock;
  timespec used{};
  if (::clock_getcpuclockid(child, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// Whether a child is beyond its limit: asked again and again.
class Watch {
 public:
  explicit Watch(const Limit& limit) : limit_(limit) {}

  bool expired(pid_t child) {
    const auto now = std::chrono::steady_clock::now();
    const auto used = used_by(child);
    if (used != used_) used_ = used, active_ = now;
    return used_ > limit_.processor || now - active_ > limit_.idle;
  }

 private:
  Limit limit_;
  std::chrono::nanoseconds used_{};
  std::chrono::steady_clock::time_point active_ = std::chrono::steady_clock::now();
};

}  // namespace

Ending run_program(const std::vector<std::string>& command,
                   const std::filesystem::path& output_file, const Limit& limit,
                   const std::filesystem::path& folder) {
  pid_t child = 0;
  const int error = spawn(child, command, folder.string(), output_file.string());
  if (error != 0) return error == ENOENT ? Ending::not_found : Ending::failed;
  Watch watch(limit);
  int status = 0;
  for (pid_t done = 0; done == 0;) {
    done = ::waitpid(child, &status, WNOHANG);
    if (done < 0 && errno == EINTR) done = 0;
    if (done != 0) break;
    if (watch.expired(child)) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return Ending::timed_out;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return Ending::not_found;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Ending::success : Ending::failed;
}

}  // namespace tern::report::detail
