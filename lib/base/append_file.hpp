/// Append-only files, such as a run's metrics.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace tern {

/// Appends are all or nothing: a piece that does not fit on the disk is truncated away, if need be
/// before the next append. Until then, or after a kill, readers skip it: it has no end of line.
class AppendFile {
 public:
  /// Opens or creates; throws UserError.
  explicit AppendFile(const std::filesystem::path& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// True: in the file, not necessarily on the disk.
  bool append(std::string_view piece);
  /// True: on the disk.
  bool sync();

 private:
  int descriptor_;
  off_t torn_ = -1;  // end of the last whole piece, if a part of another follows it
};

}  // namespace tern
