/// Files read and written whole. Writers fill a temporary file and rename it into place, so that
/// readers see either the old file or the new one; durable writes survive a crash of the machine.
/// Unless stated otherwise, functions throw FileError, whose text names the path and the system's
/// reason.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
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
  /// Passes `flags`, plus O_CLOEXEC, and mode 0644 to open(2).
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

/// fsync of a file, or of a directory (makes its entries durable).
void sync_path(const std::filesystem::path& path);
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
/// Writes `text` to a temporary file, fsyncs, renames it to `path`, fsyncs the directory.
void write_durably(const std::filesystem::path& path, std::string_view text);
/// The same without fsync, for files that a run can do without. On failure returns false and leaves
/// nothing behind.
bool replace_file(const std::filesystem::path& path, std::string_view text);
/// Fills a new file in place by write(stream), for folders that are renamed into place as a whole.
/// Throws UserError if the disk refuses.
void write_file(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);
std::string read_text(const std::filesystem::path& path);
/// Empty if the file cannot be read.
std::string read_text_or_empty(const std::filesystem::path& path);
/// Removes a file or a directory tree; never throws (leftovers are found at the next start).
void remove_quietly(const std::filesystem::path& path) noexcept;
/// 16 hexadecimal digits from the system's random source, for unique names.
std::string unique_token();

}  // namespace tern
