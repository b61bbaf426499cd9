/// A file mapped read-only into memory; its pages are read by the kernel when they are first
/// touched.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string_view>

namespace tern {

class MappedFile {
 public:
  /// Throws UserError naming `path` if it cannot be opened, is not a regular file, or cannot be
  /// mapped. An empty file maps to no bytes.
  explicit MappedFile(std::filesystem::path path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::string_view text() const { return {data_, size_}; }

  /// Throws UserError if the file has become shorter than it was: touching the lost pages would
  /// kill the process with SIGBUS.
  void require_whole() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tern
