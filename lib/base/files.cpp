#include "base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ostream>
#include <random>
#include <streambuf>

#include "base/error.hpp"

namespace tern {
namespace {

/// Reason why open() or fstat() of what is named `path` is no use; null if it is an ordinary one.
const char* special(const std::filesystem::path& path, bool writes) {
  struct stat status;
  if (writes && ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    return "it is a symbolic link, which is never written through; remove the link";
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
    return nullptr;
  return S_ISFIFO(status.st_mode)   ? "it is a pipe, not a regular file"
         : S_ISSOCK(status.st_mode) ? "it is a socket, not a regular file"
                                    : "it is a device, not a regular file";
}

/// Writes to a file; a failure is that of the stream.
class FileBuffer : public std::streambuf {
 public:
  explicit FileBuffer(File& file) : file_(file) {
    setp(block_.data(), block_.data() + block_.size());
  }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  int sync() override {
    const auto count = static_cast<std::size_t>(pptr() - pbase());
    file_.write(pbase(), count, written_);
    written_ += count;
    setp(block_.data(), block_.data() + block_.size());
    return 0;
  }

 private:
  File& file_;
  std::uint64_t written_ = 0;
  std::array<char, 1 << 16> block_;
};

}  // namespace

FileError::FileError(std::string_view action, const std::filesystem::path& path, int error)
    : FileError(action, path, strerror(error), error) {}

FileError::FileError(std::string_view action, const std::filesystem::path& path,
                     std::string_view reason, int error)
    : std::runtime_error(fmt::format("cannot {} {}: {}", action, path.string(), reason)),
      code(error) {}

int open_file(const std::filesystem::path& path, int flags, unsigned mode) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const char* const action = flags & O_CREAT ? "create" : "open";
  // Without O_NONBLOCK, open() of a pipe would wait for its other end.
  const int extra = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (writes ? O_NOFOLLOW : 0);
  int descriptor;
  do descriptor = ::open(path.c_str(), flags | extra, mode);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) {
    const int error = errno;
    if (error == ELOOP || error == ENXIO)
      if (const char* why = special(path, writes)) throw FileError(action, path, why, error);
    throw FileError(action, path, error);
  }
  struct stat status;
  const bool known = ::fstat(descriptor, &status) == 0;
  const int error = errno;
  if (known && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
    ::fcntl(descriptor, F_SETFL, flags & O_APPEND);  // reads and writes may wait
    return descriptor;
  }
  ::close(descriptor);
  if (!known) throw FileError("read the size of", path, error);
  const char* why = special(path, false);
  throw FileError(action, path, why ? why : "it is not a regular file", EINVAL);
}

File::File(const std::filesystem::path& path, int flags)
    : path_(path), descriptor_(open_file(path, flags)) {}

File::~File() { ::close(descriptor_); }

std::uint64_t File::size() const {
  struct stat status;
  if (::fstat(descriptor_, &status) != 0) throw FileError("read the size of", path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

std::size_t File::read(void* to, std::size_t count, std::uint64_t offset) const {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t n = ::pread(descriptor_, static_cast<char*>(to) + done, count - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileError("read", path_, errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void File::write(const void* from, std::size_t count, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t n = ::pwrite(descriptor_, static_cast<const char*>(from) + done, count - done,
                               static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw FileError("write", path_, n < 0 ? errno : EIO);
    done += static_cast<std::size_t>(n);
  }
}

void File::sync() {
  if (::fsync(descriptor_) != 0) throw FileError("fsync", path_, errno);
}

bool leads_out(const std::filesystem::path& folder, const std::filesystem::path& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path file = fs::canonical(folder / name, error);
  if (error == std::errc::no_such_file_or_directory) return false;
  if (error) return true;
  const fs::path within = fs::canonical(folder, error);
  if (file.parent_path() == within) return false;
  const bool cached = within.parent_path().filename() == "snapshots";
  return !cached || file.parent_path() != within.parent_path().parent_path() / "blobs";
}

void sync_path(const std::filesystem::path& path) { File(path, O_RDONLY).sync(); }

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw FileError("rename", from, errno);
}

void write_durably(const std::filesystem::path& path, std::string_view text) {
  const auto temporary = path.string() + ".tmp-" + unique_token();
  try {
    File file(temporary, O_WRONLY | O_CREAT | O_EXCL);
    file.write(text.data(), text.size(), 0);
    file.sync();
    rename_path(temporary, path);
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
  sync_path(path.parent_path().empty() ? "." : path.parent_path());
}

bool replace_file(const std::filesystem::path& path, std::string_view text) {
  const auto temporary = path.string() + ".new-" + unique_token();
  try {
    File(temporary, O_WRONLY | O_CREAT | O_EXCL).write(text.data(), text.size(), 0);
    rename_path(temporary, path);
  } catch (const FileError& error) {
    remove_quietly(temporary);
    errno = error.code;
    return false;
  }
  return true;
}

void remove_leftovers(const std::filesystem::path& folder) noexcept {
  const auto is_leftover = [](const std::string& name) {
    constexpr std::size_t token = 16, mark = 5;
    if (name.size() <= token + mark) return false;
    const std::string_view end = std::string_view(name).substr(name.size() - token - mark);
    return (end.starts_with(".new-") || end.starts_with(".tmp-")) &&
           std::all_of(end.begin() + mark, end.end(),
                       [](char c) { return std::isxdigit(static_cast<unsigned char>(c)); });
  };
  try {
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error))
      if (is_leftover(it->path().filename().string()) &&
          !std::filesystem::is_directory(it->symlink_status()))
        std::filesystem::remove(it->path(), error);
  } catch (...) {  // they do no harm
  }
}

void make_own_folder(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error)))
    throw FileError("use", path, special(path, true), ELOOP);
  fs::create_directories(path, error);
  if (error) throw FileError("create", path, error.value());
}

void write_file(const std::filesystem::path& path,
                const std::function<void(std::ostream&)>& write) {
  try {
    File file(path, O_WRONLY | O_CREAT | O_TRUNC);
    FileBuffer buffer(file);
    std::ostream stream(&buffer);
    write(stream);
    stream.flush();
    if (!stream)
      user_error("{}: cannot be written; check free space and permissions", path.string());
  } catch (const FileError& error) {
    user_error("{}", error.what());
  }
}

std::string read_text(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  constexpr std::size_t block = 1 << 16;
  std::string text(file.size(), '\0');
  std::size_t done = file.read(text.data(), text.size(), 0);
  // Files of /proc state no size, and a log may grow.
  while (done == text.size()) {
    text.resize(done + block);
    done += file.read(text.data() + done, block, done);
  }
  text.resize(done);
  return text;
}

std::string read_text(const std::filesystem::path& path, std::string_view remedy) {
  try {
    return read_text(path);
  } catch (const FileError& error) {
    user_error("{}; {}", error.what(), remedy);
  }
}

std::string read_text_or_empty(const std::filesystem::path& path) {
  try {
    return read_text(path);
  } catch (const FileError&) {
    return {};
  }
}

std::string read_text_if_there(const std::filesystem::path& path) {
  try {
    return read_text(path);
  } catch (const FileError& error) {
    if (error.code == ENOENT) return {};
    throw;
  }
}

void remove_quietly(const std::filesystem::path& path) noexcept {
  try {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  } catch (...) {  // out of memory during the walk: removed at the next start
  }
}

std::string unique_token() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

}  // namespace tern
