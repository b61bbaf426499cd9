#include "base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "base/error.hpp"

namespace tern {

FileError::FileError(std::string_view action, const std::filesystem::path& path, int error)
    : std::runtime_error(fmt::format("cannot {} {}: {}", action, path.string(), strerror(error))),
      code(error) {}

File::File(const std::filesystem::path& path, int flags)
    : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) throw FileError(flags & O_CREAT ? "create" : "open", path, errno);
}

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
  const auto temporary = path.string() + ".new";
  try {
    File(temporary, O_WRONLY | O_CREAT | O_TRUNC).write(text.data(), text.size(), 0);
    rename_path(temporary, path);
  } catch (const FileError&) {
    remove_quietly(temporary);
    return false;
  }
  return true;
}

void write_file(const std::filesystem::path& path,
                const std::function<void(std::ostream&)>& write) {
  std::ofstream stream(path, std::ios::binary);
  write(stream);
  stream.close();
  if (!stream) user_error("{}: cannot be written", path.string());
}

std::string read_text(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  std::string text(file.size(), '\0');
  text.resize(file.read(text.data(), text.size(), 0));
  return text;
}

std::string read_text_or_empty(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
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
