#include "base/output.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace tern {

void hold_standard_streams() {
  for (const int stream : {0, 1, 2})
    if (::fcntl(stream, F_GETFD) == -1 && errno == EBADF)
      // open() takes the lowest free descriptor, this one. Opened in the wrong direction, so that
      // using it fails.
      (void)!::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
}

bool output_written() {
  errno = 0;
  const bool streamed = static_cast<bool>(std::cout.flush());
  const bool flushed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (streamed && flushed) return true;
  std::fprintf(stderr, "error: standard output could not be written%s%s\n", errno ? ": " : "",
               errno ? std::strerror(errno) : "");
  return false;
}

}  // namespace tern
