#include "base/append_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/files.hpp"

namespace tern {

AppendFile::AppendFile(const std::filesystem::path& path) {
  try {
    descriptor_ = open_file(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  } catch (const FileError& error) {
    user_error("{}; check &output directory", error.what());
  }
}

AppendFile::~AppendFile() { ::close(descriptor_); }

bool AppendFile::append(std::string_view piece) {
  if (torn_ >= 0 && ::ftruncate(descriptor_, torn_) != 0) return false;
  torn_ = -1;
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  while (!piece.empty()) {
    const ssize_t n = ::write(descriptor_, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (before >= 0 && ::ftruncate(descriptor_, before) != 0) torn_ = before;
      return false;
    }
    piece.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool AppendFile::sync() { return ::fdatasync(descriptor_) == 0; }

}  // namespace tern
