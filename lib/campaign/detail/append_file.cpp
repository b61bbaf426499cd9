#include "campaign/detail/append_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/error.hpp"

namespace tern::campaign::detail {

AppendFile::AppendFile(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0)
    user_error("cannot write {}: {}; check &output directory", path.string(), std::strerror(errno));
}

AppendFile::~AppendFile() { ::close(descriptor_); }

bool AppendFile::append(std::string_view piece) {
  const off_t before = ::lseek(descriptor_, 0, SEEK_END);
  while (!piece.empty()) {
    const ssize_t n = ::write(descriptor_, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      // Should the truncation fail as well, half a piece stays, which readers skip.
      [[maybe_unused]] const int truncated = ::ftruncate(descriptor_, before);
      return false;
    }
    piece.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool AppendFile::sync() { return ::fdatasync(descriptor_) == 0; }

bool replace_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path draft = path.string() + ".new";
  std::error_code error;
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (out) std::filesystem::rename(draft, path, error);
  if (out && !error) return true;
  std::filesystem::remove(draft, error);
  return false;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace tern::campaign::detail
