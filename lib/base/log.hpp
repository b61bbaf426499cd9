/// Log of a run: console and log.txt, from rank 0 only. Each campaign owns one Log and passes it
/// down; there is no global one.
///
/// The Log alone knows the form: times of day (UTC), columns and their header, a terminal or not.
/// log.txt and a console that is no terminal get the same plain lines; a terminal also has
/// a last line of progress that overwrites itself, and colors.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tern {

/// How much of the log a console shows.
enum class Verbosity { quiet, normal, verbose };

/// What a log is shown on.
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

/// Column of a table of the log; cells are right-aligned.
struct LogColumn {
  std::string name;
  std::size_t width;
  int dispensable = 0;  // where a row is too long, the columns with the largest number are left out
};

class Log {
 public:
  static constexpr std::size_t width = 100;  // of a row in log.txt, columns

  /// Silent if `prints` is false (every rank but rank 0).
  explicit Log(bool prints = true, Verbosity verbosity = Verbosity::normal,
               const Console& console = Console::standard_output());
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// Appends all further lines to this file as well.
  void open(const std::filesystem::path& file);

  /// A text as it is, of one or more lines.
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    if (prints_) write(fmt::format(text, std::forward<Args>(args)...));
  }
  /// What the user asked for: on the console also with --quiet.
  template <class... Args>
  void result(fmt::format_string<Args...> text, Args&&... args) {
    if (prints_) write_result(fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void warning(fmt::format_string<Args...> text, Args&&... args) {
    if (prints_) warn(fmt::format(text, std::forward<Args>(args)...));
  }
  /// A line with the time.
  template <class... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    if (prints_) write(stamped(fmt::format(text, std::forward<Args>(args)...)));
  }
  /// The same, with --verbose only.
  template <class... Args>
  void detail(fmt::format_string<Args...> text, Args&&... args) {
    if (details()) write(stamped(fmt::format(text, std::forward<Args>(args)...)));
  }

  /// Begins a table: time, a count named `counter` and these columns. Its header precedes the first
  /// row, and again a row whenever a screen of lines has passed. From here on warnings have a time.
  void begin_table(std::string counter, std::vector<LogColumn> columns);
  /// A cell per column of begin_table().
  void row(std::int64_t count, const std::vector<std::string>& cells);
  /// Words in place of the columns.
  template <class... Args>
  void row_text(std::int64_t count, fmt::format_string<Args...> text, Args&&... args) {
    if (!prints_) return;
    write_header_if_due();
    write(stamped(counted(count) + "  " + fmt::format(text, std::forward<Args>(args)...)));
  }

  /// The state of work in progress: on a terminal its last line, until the next text.
  template <class... Args>
  void progress(fmt::format_string<Args...> text, Args&&... args) {
    if (progress_due()) show_progress(fmt::format(text, std::forward<Args>(args)...));
  }
  /// The same, and a plain line wherever nothing was written for half a minute.
  template <class... Args>
  void long_progress(fmt::format_string<Args...> text, Args&&... args) {
    const bool shown = progress_due(), plain = prints_ && silent_for_long();
    if (!shown && !plain) return;
    const std::string words = fmt::format(text, std::forward<Args>(args)...);
    if (shown) show_progress(words);
    if (plain) write_plain(words);
  }

  bool prints() const { return prints_; }
  bool details() const { return prints_ && verbosity_ == Verbosity::verbose; }

 private:
  using Clock = std::chrono::steady_clock;
  using Shown = std::vector<std::size_t>;  // numbers of the columns that fit

  void write(std::string_view text);
  void write_result(std::string_view text);
  void write_header_if_due();
  void warn(std::string_view text);
  void write_plain(std::string_view text);
  /// Colors are in the console's text only.
  void emit(std::string_view console, std::string_view file, bool on_console);
  std::string stamped(std::string_view text);
  std::string counted(std::int64_t count) const;
  std::string header(const Shown& shown) const;
  std::string cells(const Shown& shown, const std::vector<std::string>& cells) const;
  Shown fitting(std::size_t most) const;
  std::size_t console_columns() const {
    return console_.terminal ? std::min(console_.width, width) : width;
  }
  bool quiet() const { return verbosity_ == Verbosity::quiet; }
  void erase_progress();
  bool progress_due();
  void show_progress(std::string_view text);
  bool silent_for_long() const;

  bool prints_;
  std::FILE* file_ = nullptr;
  Verbosity verbosity_;
  Console console_;
  std::recursive_mutex mutex_;  // a checkpoint's writer warns from a thread of its own
  std::string day_;             // of the latest time
  std::string counter_;         // of the table; empty: none yet
  std::vector<LogColumn> columns_;
  std::size_t lines_since_header_ = 0;
  bool header_due_ = false, progress_shown_ = false;
  Clock::time_point progressed_, written_ = Clock::now();
};

}  // namespace tern
