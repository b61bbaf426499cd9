#include "base/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace tern {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

Console Console::standard_output() {
  Console console;
  winsize size{};
  const bool sized = ::isatty(STDOUT_FILENO) == 1 &&
                     ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  if (!sized || environment("TERM") == "dumb") return console;
  console.terminal = true;
  console.width = size.ws_col;
  console.color = environment("NO_COLOR").empty();
  return console;
}

}  // namespace tern
