/// A file that a run appends to, such as its metrics.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace tern {

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

}  // namespace tern
