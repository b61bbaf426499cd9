/// The console that a log is shown on, and how much of it.
#pragma once
#include <cstddef>
#include <ctime>

namespace tern {

/// How much of the log a console shows.
enum class Verbosity { quiet, normal, verbose };

struct Console {
  bool terminal = false;    // a line can be overwritten
  bool color = false;       // and colors are wanted
  std::size_t width = 100;  // columns
  std::time_t (*now)() = [] { return std::time(nullptr); };

  /// A terminal if standard output is one that knows its width and TERM is not "dumb" (a launcher
  /// such as mpirun gives ranks a terminal without a width, whose output may go to a file); colors
  /// unless NO_COLOR is set.
  static Console standard_output();
};

}  // namespace tern
