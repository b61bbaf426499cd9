#include "checkpoint/detail/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "checkpoint/detail/files.hpp"

namespace tern::checkpoint::detail {

Mapping::Mapping(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  size_ = file.size();
  if (size_ == 0) return;  // mmap refuses these
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (mapped == MAP_FAILED) throw FileError("map", path, errno);
  data_ = static_cast<const unsigned char*>(mapped);
}

Mapping::~Mapping() {
  if (data_) ::munmap(const_cast<unsigned char*>(data_), size_);
}

}  // namespace tern::checkpoint::detail
