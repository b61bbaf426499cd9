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
  FileError(std::string_view action, const std::filesystem::path& path, std::string_view reason,
            int code);
  int code;  // errno
};

/// open(2) of a regular file or a folder, close-on-exec; all functions below open files so. A pipe,
/// a socket or a device is refused at once, and no file is opened for writing through a symbolic
/// link (its folder may be reached through one). Returns the descriptor.
int open_file(const std::filesystem::path& path, int flags, unsigned mode = 0644);

/// An open file descriptor.
class File {
 public:
  /// As open_file().
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

/// Whether FOLDER/NAME is, by symbolic links, a file outside of the folder; false if there is no such
/// file. The blobs of a cache of the Hugging Face hub count as inside: its folders hold links to them.
bool leads_out(const std::filesystem::path& folder, const std::filesystem::path& name);

/// fsync of a file, or of a directory (makes its entries durable).
void sync_path(const std::filesystem::path& path);
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
/// Writes `text` to a temporary file, fsyncs, renames it to `path`, fsyncs the directory.
void write_durably(const std::filesystem::path& path, std::string_view text);
/// The same without fsync, for files that a run can do without. On failure returns false, sets errno
/// and leaves nothing behind.
bool replace_file(const std::filesystem::path& path, std::string_view text);
/// Removes the temporary files of write_durably() and replace_file() that a killed process left in
/// `folder`. For the owner of the folder only.
void remove_leftovers(const std::filesystem::path& folder) noexcept;
/// Creates `path` and its parents unless it is there. A symbolic link in its place is refused: what
/// a run writes stays in its directory.
void make_own_folder(const std::filesystem::path& path);
/// Fills a new file in place by write(stream), for folders that are renamed into place as a whole.
/// Throws UserError if the disk refuses.
void write_file(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);
std::string read_text(const std::filesystem::path& path);
/// The same for a file that a user names. Throws UserError: the reason, then `remedy`.
std::string read_text(const std::filesystem::path& path, std::string_view remedy);
/// Empty if the file cannot be read.
std::string read_text_or_empty(const std::filesystem::path& path);
/// Empty if there is no such file.
std::string read_text_if_there(const std::filesystem::path& path);
/// Removes a file or a directory tree; never throws (leftovers are found at the next start).
void remove_quietly(const std::filesystem::path& path) noexcept;
/// 16 hexadecimal digits from the system's random source, for unique names.
std::string unique_token();

}  // namespace tern
