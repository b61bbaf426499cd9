/// Files read and written whole. A writer fills a temporary name and renames it, so that readers
/// see the old file or the new one; what is written durably survives a crash of the machine.
/// Functions throw FileError, whose text names the path and the system's reason, unless they say
/// otherwise.
#pragma once
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tern {

class FileError : public std::runtime_error {
 public:
  FileError(std::string_view action, const std::filesystem::path& path, int code);
  int code;  // errno
};

/// An open file descriptor.
class File {
 public:
  /// `flags` and the mode 0644 go to open(2); O_CLOEXEC is added.
  File(const std::filesystem::path& path, int flags);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  std::uint64_t size() const;
  /// Reads up to `count` bytes at `offset`; fewer only at the end of the file.
  std::size_t read(void* to, std::size_t count, std::uint64_t offset) const;
  void write(const void* from, std::size_t count, std::uint64_t offset);
  void sync();

 private:
  std::filesystem::path path_;
  int descriptor_;
};

/// fsync of a file or of a folder (so that the names in it are on disk).
void sync_path(const std::filesystem::path& path);
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
/// Writes `text` under a temporary name, fsyncs, renames to `path`, fsyncs the folder.
void write_durably(const std::filesystem::path& path, std::string_view text);
/// The same without fsync, for files that a run can do without: false, and nothing left behind, if
/// the disk refuses.
bool replace_file(const std::filesystem::path& path, std::string_view text);
std::string read_text(const std::filesystem::path& path);
/// Empty if the file cannot be read.
std::string read_text_or_empty(const std::filesystem::path& path);
/// Removes a file or a folder with all in it; never throws (what is left is found at the next
/// start).
void remove_quietly(const std::filesystem::path& path) noexcept;
/// 16 hexadecimal digits from the system's random source: names that no earlier process has used.
std::string unique_token();

}  // namespace tern
