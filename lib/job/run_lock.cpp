#include "job/run_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/host.hpp"
#include "base/json.hpp"
#include "base/timer.hpp"

namespace tern::job {
namespace {

namespace fs = std::filesystem;

constexpr double ending_seconds = 3;   // for an owner that is about to end
constexpr double lease_seconds = 120;  // for a server to notice a lost node (NFS 4: 90)

struct Owner {
  std::string host;
  long process = 0;
  std::string started;  // boot id and start time in clock ticks: detects reused process ids
  std::string job;      // Slurm job; empty outside
  std::string restart;  // the job's restart count
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Start of a process on this host; empty if there is none with this id.
std::string start_of(long process) {
  std::string boot, stat;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), stat);
  const auto name_end = stat.rfind(')');  // the process name may contain blanks
  if (name_end == std::string::npos) return "";
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i) {
  }
  return boot + " " + field;
}

Owner this_process() {
  return {host_name(), ::getpid(), start_of(::getpid()), environment("SLURM_JOB_ID"),
          environment("SLURM_RESTART_COUNT")};
}

std::string to_text(const Owner& o) {
  const nlohmann::ordered_json object = {{"host", o.host},
                                         {"process", o.process},
                                         {"started", o.started},
                                         {"slurm_job", o.job},
                                         {"slurm_restart", o.restart}};
  return json_text(object) + "\n";
}

Owner read_owner(int descriptor) {
  char text[4096];
  const ssize_t n = ::pread(descriptor, text, sizeof text, 0);
  const auto object = try_json({text, static_cast<std::size_t>(std::max<ssize_t>(n, 0))});
  if (!object.is_object()) return {};
  const auto member = [&](const char* name) { return object.value(name, std::string()); };
  try {
    return {member("host"), object.value("process", 0L), member("started"), member("slurm_job"),
            member("slurm_restart")};
  } catch (const nlohmann::json::exception&) {  // not written by a run: nobody's
    return {};
  }
}

/// Judged by the recorded owner only; an empty file has none.
bool owner_ended(const Owner& o) {
  if (o.process == 0) return true;
  if (o.host == host_name()) return start_of(o.process) != o.started;
  return !o.job.empty() && o.job == environment("SLURM_JOB_ID") &&
         o.restart != environment("SLURM_RESTART_COUNT");
}

[[noreturn]] void refuse(const fs::path& directory, const fs::path& file, const Owner& o,
                         bool locked) {
  const std::string who =
      o.process == 0 ? std::string("another process")
                     : fmt::format("process {} on {}{}", o.process, o.host,
                                   o.job.empty() ? "" : fmt::format(" (Slurm job {})", o.job));
  user_error("{} is in use by {}: wait for its end, or set another &output directory{}",
             directory.string(), who,
             locked ? "" : fmt::format("; if it has ended, remove {}", file.string()));
}

/// Result of trying the lock; unknown if the file system has no locks.
enum class Held { by_us, by_other, unknown };
Held take(int descriptor) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_OFD_SETLK, &whole) == 0) return Held::by_us;
  return errno == EAGAIN || errno == EACCES ? Held::by_other : Held::unknown;
}

}  // namespace

RunLock::RunLock(const fs::path& directory) {
  const fs::path file = directory / ".lock";
  try {
    descriptor_ = open_file(file, O_RDWR | O_CREAT);
  } catch (const FileError& error) {
    user_error("{}; check &output directory", error.what());
  }
  Held held = take(descriptor_);
  Owner owner = read_owner(descriptor_);
  for (const Timer timer;
       held == Held::by_other &&
       timer.seconds() < (owner_ended(owner) ? lease_seconds : ending_seconds);) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    held = take(descriptor_);
    owner = read_owner(descriptor_);
  }
  if (held == Held::by_other || (held == Held::unknown && !owner_ended(owner))) {
    ::close(std::exchange(descriptor_, -1));
    refuse(directory, file, owner, held == Held::by_other);
  }
  const std::string text = to_text(this_process());
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    ::close(std::exchange(descriptor_, -1));
    user_error("cannot write {}: {}; check &output directory and its disk", file.string(),
               std::strerror(error));
  }
}

RunLock::~RunLock() {
  if (descriptor_ < 0) return;
  [[maybe_unused]] const int emptied = ::ftruncate(descriptor_, 0);
  ::close(descriptor_);
}

RunLock::RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

bool in_use(const fs::path& directory) {
  const fs::path file = directory / ".lock";
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return false;
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool has_locks = ::fcntl(descriptor, F_OFD_GETLK, &whole) == 0;
  const bool held = has_locks ? whole.l_type != F_UNLCK : !owner_ended(read_owner(descriptor));
  ::close(descriptor);
  return held;
}

}  // namespace tern::job
