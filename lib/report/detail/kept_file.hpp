/// An append-only file that keeps what the disk refuses, and writes it before what comes next.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "base/append_file.hpp"

namespace tern::report::detail {

class KeptFile {
 public:
  /// Bytes that are kept at most; further pieces are lost.
  static constexpr std::size_t most = std::size_t{1} << 20;

  /// Opens or creates; throws UserError.
  explicit KeptFile(const std::filesystem::path& path) : file_(path) {}

  /// Appends what was refused before, then `piece`. True: the file holds all of it. Of several
  /// pieces the file has either all or none, in their order.
  bool append(std::string_view piece);
  /// Tries again to write what was refused, and flushes the file to the disk. True: everything that
  /// was ever appended is there.
  bool sync();

  /// Pieces that the file does not hold yet, in their order.
  const std::string& refused() const { return refused_; }

 private:
  AppendFile file_;
  std::string refused_;
  bool lost_ = false;  // more was refused than is kept
};

}  // namespace tern::report::detail
