/// Read-only memory-mapped files; pages are read on first access.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string_view>

namespace tern {

class MappedFile {
 public:
  /// Throws UserError naming `path` if it cannot be opened (with `remedy`), is not a regular file, or
  /// cannot be mapped. An empty file maps to no bytes.
  explicit MappedFile(std::filesystem::path path, std::string_view remedy = "");
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::string_view text() const { return {data_, size_}; }

  /// Throws UserError if the file has shrunk since it was mapped: access to the lost pages would
  /// raise SIGBUS.
  void require_whole() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tern
