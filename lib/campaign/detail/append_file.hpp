#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace tern::campaign::detail {

/// A file that grows by whole pieces: a piece that does not fit on the disk leaves nothing behind.
class AppendFile {
 public:
  /// Opens or creates; throws UserError.
  explicit AppendFile(const std::filesystem::path& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// In the file (not necessarily on the disk) when it returns true.
  bool append(std::string_view piece);
  /// On the disk when it returns true.
  bool sync();

 private:
  int descriptor_;
};

/// Writes `text` beside `path`, then renames it there: readers see the old or the new file. False,
/// and nothing left behind, if the disk refuses.
bool replace_file(const std::filesystem::path& path, std::string_view text);

/// The whole file; empty if it cannot be read.
std::string read_file(const std::filesystem::path& path);

}  // namespace tern::campaign::detail
