#include "base/log.hpp"

#include "base/error.hpp"

namespace tern {

Log::~Log() {
  if (file_) std::fclose(file_);
}

void Log::open(const std::filesystem::path& file) {
  if (!speaks_) return;
  if (file_) std::fclose(file_);
  file_ = std::fopen(file.c_str(), "a");
  if (!file_) user_error("cannot write {}: check &output directory", file.string());
}

/// A console that is gone, or a disk that is full, does not end a run.
void Log::write(std::string_view text) {
  const std::string line = fmt::format("{}\n", text);
  for (std::FILE* to : {stdout, file_}) {
    if (!to) continue;
    std::fwrite(line.data(), 1, line.size(), to);
    if (std::fflush(to) != 0) std::clearerr(to);
  }
}

}  // namespace tern
