#include "base/log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"

namespace tern {
namespace {

constexpr std::size_t screen = 24;  // lines after which a header is repeated
constexpr std::size_t counter_width = 8;
constexpr const char* time_title = "time UTC";
constexpr std::chrono::milliseconds between_progress{100};
constexpr std::chrono::seconds long_silence{30};

// Escape sequences of colors.
const std::string bold = "\x1b[1m", yellow = "\x1b[33m", usual = "\x1b[0m";

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void put(std::FILE* to, std::string_view text) {
  // Errors stay set in the stream: output_written() reports those of standard output.
  std::fwrite(text.data(), 1, text.size(), to);
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

Log::Log(bool prints, Verbosity verbosity, const Console& console)
    : prints_(prints), verbosity_(verbosity), console_(console) {}

Log::~Log() {
  erase_progress();
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

void Log::emit(std::string_view console, std::string_view file, bool on_console) {
  const std::lock_guard lock(mutex_);
  if (on_console) {
    erase_progress();
    put(stdout, console);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  if (file_) {
    put(file_, file);
    std::fputc('\n', file_);
    std::fflush(file_);
  }
  lines_since_header_ += 1 + static_cast<std::size_t>(std::count(file.begin(), file.end(), '\n'));
  written_ = Clock::now();
}

void Log::write(std::string_view given) {
  const std::string text = printable(given);
  emit(text, text, !quiet());
}

void Log::write_result(std::string_view given) {
  const std::string text = printable(given);
  emit(text, text, true);
}

void Log::warn(std::string_view given) {
  const std::lock_guard lock(mutex_);
  const std::string text = printable(given), word = "warning: ";
  const std::string time = counter_.empty() ? "" : stamped("");
  emit(time + (console_.color ? yellow + word + usual : word) + text, time + word + text, true);
}

/// The time of day before a text; on a new day, its date on a line before.
std::string Log::stamped(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const std::tm now = fmt::gmtime(console_.now());
  const std::string day = fmt::format("{:%Y-%m-%d}", now);
  const bool later = !day_.empty() && day != day_;
  day_ = day;
  return fmt::format("{}{:%H:%M:%S}  {}", later ? day + " UTC\n" : std::string(), now, text);
}

std::string Log::counted(std::int64_t count) const {
  return fmt::format("{:>{}}", count, counter_width);
}

void Log::begin_table(std::string counter, std::vector<LogColumn> columns) {
  counter_ = std::move(counter);
  columns_ = std::move(columns);
  header_due_ = true;
}

/// Leaves out dispensable columns until a row has at most `most` characters.
Log::Shown Log::fitting(std::size_t most) const {
  Shown shown(columns_.size());
  std::iota(shown.begin(), shown.end(), 0);
  while (verbosity_ != Verbosity::verbose && header(shown).size() > most) {
    const auto last = std::max_element(shown.begin(), shown.end(), [&](auto a, auto b) {
      return columns_[a].dispensable <= columns_[b].dispensable;
    });
    if (last == shown.end() || columns_[*last].dispensable == 0) break;
    shown.erase(last);
  }
  return shown;
}

std::string Log::header(const Shown& shown) const {
  std::string text = fmt::format("{}  {:>{}}", time_title, counter_, counter_width);
  for (const std::size_t i : shown)
    text += fmt::format("  {:>{}}", columns_[i].name, columns_[i].width);
  return text;
}

std::string Log::cells(const Shown& shown, const std::vector<std::string>& cells) const {
  std::string text;
  for (const std::size_t i : shown) text += fmt::format("  {:>{}}", cells.at(i), columns_[i].width);
  return text;
}

void Log::write_header_if_due() {
  const std::lock_guard lock(mutex_);
  if (!header_due_ && (counter_.empty() || lines_since_header_ < screen)) return;
  const std::string titles = header(fitting(console_columns()));
  emit(console_.color ? bold + titles + usual : titles, header(fitting(width)), !quiet());
  header_due_ = false;
  lines_since_header_ = 0;
}

void Log::row(std::int64_t count, const std::vector<std::string>& given) {
  if (!prints_) return;
  const std::lock_guard lock(mutex_);
  write_header_if_due();
  const std::string start = stamped(counted(count));
  emit(start + cells(fitting(console_columns()), given), start + cells(fitting(width), given),
       !quiet());
}

void Log::erase_progress() {
  if (!progress_shown_) return;
  put(stdout, "\r\x1b[K");
  std::fflush(stdout);
  progress_shown_ = false;
}

bool Log::progress_due() {
  if (!prints_ || !console_.terminal || !!quiet()) return false;
  const auto now = Clock::now();
  if (now - progressed_ < between_progress) return false;
  progressed_ = now;
  return true;
}

void Log::show_progress(std::string_view given) {
  const std::lock_guard lock(mutex_);
  std::string text = printable(given);
  if (text.size() >= console_.width) text.resize(console_.width - 1);
  put(stdout, "\r" + text + "\x1b[K");
  std::fflush(stdout);
  progress_shown_ = true;
}

bool Log::silent_for_long() const { return Clock::now() - written_ >= long_silence; }

void Log::write_plain(std::string_view given) {
  const std::string text = stamped(printable(given));
  emit(text, text, !console_.terminal && !quiet());
}

}  // namespace tern
