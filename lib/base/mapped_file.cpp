#include "base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/data_recipes.hpp"
#include "base/error.hpp"

namespace tern {

MappedFile::MappedFile(std::filesystem::path path, std::string_view otherwise)
    : path_(std::move(path)) {
  // Without O_NONBLOCK, open() of a pipe without a writer would block.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    const std::string reason = std::strerror(errno);
    const std::string remedy =
        errno == ENOENT ? how_to_make(path_, std::string(otherwise)) : std::string(otherwise);
    user_error("{}: cannot be opened: {}{}{}", path_.string(), reason, remedy.empty() ? "" : "; ",
               remedy);
  }
  struct stat status = {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    user_error("{}: not a regular file but {}; copy its contents to a file", path_.string(),
               S_ISFIFO(status.st_mode)  ? "a pipe"
               : S_ISDIR(status.st_mode) ? "a folder"
                                         : "a device");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    ::close(descriptor_);
    user_error("{}: cannot be mapped into memory: {}", path_.string(), std::strerror(error));
  }
  data_ = static_cast<const char*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MappedFile::require_whole() const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0 || static_cast<std::size_t>(status.st_size) < size_) {
    user_error("{}: shrank from {} to {} bytes while it was being read", path_.string(), size_,
               status.st_size);
  }
}

}  // namespace tern
