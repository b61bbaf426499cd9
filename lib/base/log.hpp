/// Log of a run: console and log.txt, from rank 0 only. Each campaign owns one Log and passes it
/// down; there is no global one.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string_view>

namespace tern {

class Log {
 public:
  /// Silent if `prints` is false (every rank but rank 0).
  explicit Log(bool prints = true) : prints_(prints) {}
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// Appends all further lines to this file as well.
  void open(const std::filesystem::path& file);

  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    if (prints_) write(fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warning(fmt::format_string<Args...> text, Args&&... args) {
    if (prints_) write("warning: " + fmt::format(text, std::forward<Args>(args)...));
  }
  bool prints() const { return prints_; }

 private:
  void write(std::string_view text);
  bool prints_;
  std::FILE* file_ = nullptr;
};

}  // namespace tern
