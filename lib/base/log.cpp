#include "base/log.hpp"

#include "base/error.hpp"

namespace tern {

Log::~Log() {
  if (file_) std::fclose(file_);
}

void Log::open(const std::filesystem::path& file) {
  if (!prints_) return;
  if (file_) std::fclose(file_);
  file_ = std::fopen(file.c_str(), "a");
  if (!file_) user_error("cannot write {}: check &output directory", file.string());
}

void Log::write(std::string_view text) {
  for (std::FILE* to : {stdout, file_}) {
    if (!to) continue;
    // Errors stay set in the stream: output_written() reports those of standard output.
    std::fwrite(text.data(), 1, text.size(), to);
    std::fputc('\n', to);
    std::fflush(to);
  }
}

}  // namespace tern
