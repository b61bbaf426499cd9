// Preloaded into a program (LD_PRELOAD), makes one of its file operations fail, or a signal arrive at one.
//
//   FAULT_ROOT     operations on files below this folder are counted, from 1; others pass
//   FAULT_N        number of the operation; without it, none
//   FAULT_TIMES    number of operations that fail from there on; 0: all
//   FAULT_ERROR    errno of the failure (28: ENOSPC)
//   FAULT_SIGNAL   in place of a failure: sent to the process before the operation
//   FAULT_RANK     only on this rank of mpirun
//   FAULT_LOG      file to which "NUMBER OPERATION PATH" is appended for each operation
//
// Counted are operations that change files: opening to write, write, fsync, truncate, rename, mkdir, remove. stdio's
// own calls of write() cannot be replaced: its fflush() is counted.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<long> count{0};

long number(const char* name, long otherwise) {
  const char* text = ::getenv(name);
  return text ? ::strtol(text, nullptr, 10) : otherwise;
}

struct Settings {
  Settings() {
    const char* rank = ::getenv("OMPI_COMM_WORLD_RANK");
    const bool here =
        ::getenv("FAULT_RANK") == nullptr || (rank && ::strcmp(rank, ::getenv("FAULT_RANK")) == 0);
    if (!here || ::getenv("FAULT_ROOT") == nullptr || !::realpath(::getenv("FAULT_ROOT"), root))
      return;
    length = ::strlen(root);
    if (const char* file = ::getenv("FAULT_LOG"))
      log = static_cast<int>(
          ::syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  }
  char root[PATH_MAX] = "";
  std::size_t length = 0;
  int log = -1;
  const long first = number("FAULT_N", 0), times = number("FAULT_TIMES", 1);
  const int error = static_cast<int>(number("FAULT_ERROR", ENOSPC));
  const int signal = static_cast<int>(number("FAULT_SIGNAL", 0));
};

const Settings& settings() {
  static const Settings instance;
  return instance;
}

/// The function of the same name that comes after this library.
template <class F>
F* next(F*, const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

/// Whether the operation on `path`, absolute, fails: errno is then set.
bool fails_at(const char* operation, const char* path) {
  const Settings& s = settings();
  if (s.length == 0 || ::strncmp(path, s.root, s.length) != 0 || path[s.length] != '/')
    return false;
  const long n = ++count;
  if (s.log >= 0) {
    char line[PATH_MAX + 64];
    const int bytes =
        ::snprintf(line, sizeof line, "%ld %s %s\n", n, operation, path + s.length + 1);
    [[maybe_unused]] const long written =
        ::syscall(SYS_write, s.log, line, static_cast<std::size_t>(bytes));
  }
  if (s.first <= 0 || n < s.first || (s.times > 0 && n >= s.first + s.times)) return false;
  if (s.signal != 0) {
    ::kill(::getpid(), s.signal);
    return false;
  }
  errno = s.error;
  return true;
}

bool fails(const char* operation, const char* path, int folder = AT_FDCWD) {
  if (!path) return false;
  if (path[0] == '/') return fails_at(operation, path);
  char whole[2 * PATH_MAX], name[64];
  ssize_t n;
  if (folder == AT_FDCWD) {
    n = ::getcwd(whole, PATH_MAX) ? static_cast<ssize_t>(::strlen(whole)) : -1;
  } else {
    ::snprintf(name, sizeof name, "/proc/self/fd/%d", folder);
    n = ::readlink(name, whole, PATH_MAX);
  }
  if (n < 0) return false;
  ::snprintf(whole + n, sizeof whole - static_cast<std::size_t>(n), "/%s", path);
  return fails_at(operation, whole);
}

bool fails(const char* operation, int descriptor) {
  char name[64], path[PATH_MAX];
  ::snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
  const ssize_t n = ::readlink(name, path, sizeof path - 1);
  if (n <= 0 || path[0] != '/') return false;
  path[n] = '\0';
  return fails_at(operation, path);
}

bool writes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0; }

mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

}  // namespace

#define TERN_OPEN(name)                                                         \
  int name(const char* path, int flags, ...) {                                  \
    va_list more;                                                               \
    va_start(more, flags);                                                      \
    const mode_t mode = mode_of(flags, more);                                   \
    va_end(more);                                                               \
    if (writes(flags) && fails("open", path)) return -1;                        \
    return next<int(const char*, int, ...)>(nullptr, #name)(path, flags, mode); \
  }
#define TERN_OPENAT(name)                                                                    \
  int name(int folder, const char* path, int flags, ...) {                                   \
    va_list more;                                                                            \
    va_start(more, flags);                                                                   \
    const mode_t mode = mode_of(flags, more);                                                \
    va_end(more);                                                                            \
    if (writes(flags) && fails("open", path, folder)) return -1;                             \
    return next<int(int, const char*, int, ...)>(nullptr, #name)(folder, path, flags, mode); \
  }
// NAME(PARAMETERS) fails with `otherwise` if the operation on `what` does.
#define TERN_CALL(result, name, parameters, arguments, what, otherwise) \
  result name parameters {                                              \
    if (fails(#name, what)) return otherwise;                           \
    return next<result parameters>(nullptr, #name) arguments;           \
  }

extern "C" {

TERN_OPEN(open)
TERN_OPEN(open64)
TERN_OPENAT(openat)
TERN_OPENAT(openat64)
TERN_CALL(ssize_t, write, (int fd, const void* from, size_t n), (fd, from, n), fd, -1)
TERN_CALL(ssize_t, writev, (int fd, const iovec* from, int n), (fd, from, n), fd, -1)
TERN_CALL(ssize_t, pwrite, (int fd, const void* from, size_t n, off_t at), (fd, from, n, at), fd,
          -1)
TERN_CALL(ssize_t, pwrite64, (int fd, const void* from, size_t n, off64_t at), (fd, from, n, at),
          fd, -1)
TERN_CALL(int, fsync, (int fd), (fd), fd, -1)
TERN_CALL(int, fdatasync, (int fd), (fd), fd, -1)
TERN_CALL(int, ftruncate, (int fd, off_t n), (fd, n), fd, -1)
TERN_CALL(int, ftruncate64, (int fd, off64_t n), (fd, n), fd, -1)
TERN_CALL(int, truncate, (const char* path, off_t n), (path, n), path, -1)
TERN_CALL(int, truncate64, (const char* path, off64_t n), (path, n), path, -1)
TERN_CALL(int, rename, (const char* from, const char* to), (from, to), from, -1)
TERN_CALL(int, mkdir, (const char* path, mode_t mode), (path, mode), path, -1)
TERN_CALL(int, remove, (const char* path), (path), path, -1)
TERN_CALL(int, unlink, (const char* path), (path), path, -1)
TERN_CALL(int, rmdir, (const char* path), (path), path, -1)

int unlinkat(int folder, const char* path, int flags) {
  if (fails("unlink", path, folder)) return -1;
  return next<int(int, const char*, int)>(nullptr, "unlinkat")(folder, path, flags);
}

FILE* fopen(const char* path, const char* mode) {
  if (mode[0] != 'r' && fails("fopen", path)) return nullptr;
  return next<FILE*(const char*, const char*)>(nullptr, "fopen")(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  if (mode[0] != 'r' && fails("fopen", path)) return nullptr;
  return next<FILE*(const char*, const char*)>(nullptr, "fopen64")(path, mode);
}

int fflush(FILE* file) {
  if (file && fails("fflush", ::fileno(file))) return EOF;
  return next<int(FILE*)>(nullptr, "fflush")(file);
}

}  // extern "C"
