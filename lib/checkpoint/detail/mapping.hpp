#pragma once
#include <cstddef>
#include <filesystem>

namespace tern::checkpoint::detail {

/// A file's bytes, mapped read-only: pages are read when they are touched. Throws FileError.
class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tern::checkpoint::detail
