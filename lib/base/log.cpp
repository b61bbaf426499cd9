#include "base/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"

namespace tern {

Log::~Log() {
  if (file_) std::fclose(file_);
}

void Log::open(const std::filesystem::path& file) {
  if (!prints_) return;
  if (file_) std::fclose(file_);
  file_ = nullptr;
  try {
    const int descriptor = open_file(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
    file_ = ::fdopen(descriptor, "a");
    if (!file_) ::close(descriptor);
  } catch (const FileError& error) {
    user_error("{}; check &output directory", error.what());
  }
  if (!file_) user_error("cannot write {}; check &output directory", file.string());
}

void Log::write(std::string_view given) {
  const std::string text = printable(given);
  for (std::FILE* to : {stdout, file_}) {
    if (!to) continue;
    // Errors stay set in the stream: output_written() reports those of standard output.
    std::fwrite(text.data(), 1, text.size(), to);
    std::fputc('\n', to);
    std::fflush(to);
  }
}

}  // namespace tern
