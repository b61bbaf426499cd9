// The form of the log: columns and their header, times, a terminal or not.
#include <gtest/gtest.h>

#include "base/log.hpp"
#include "scratch.hpp"

namespace tern {
namespace {

std::time_t clock_of_test = 0;

Console console(bool terminal, std::size_t width = 100) {
  Console made;
  made.terminal = made.color = terminal;
  made.width = width;
  made.now = [] { return clock_of_test; };
  return made;
}

const std::vector<LogColumn> columns{{"loss", 7}, {"plan", 7, 1}, {"left", 8}};

/// What `write` shows on the console and what it leaves in the file.
struct Written {
  std::string shown, kept;
};

template <class Write>
Written written(const Write& write, const Console& on, Verbosity verbosity = Verbosity::normal) {
  clock_of_test = 1'795'000'000;  // 2026-11-18 11:06:40
  const test::Scratch scratch;
  testing::internal::CaptureStdout();
  {
    Log log(true, verbosity, on);
    log.open(scratch / "log.txt");
    write(log);
  }
  std::fflush(stdout);
  return {testing::internal::GetCapturedStdout(), scratch.read("log.txt")};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Log, RowsHaveTimesAndOneHeader) {
  const Written w = written(
      [](Log& log) {
        log.line("plain");
        log.warning("before");
        log.begin_table("step", columns);
        log.row(1, {"2.3456", "1.0000", "-"});
        log.row(20, {"1.3456", "0.5000", "5.1 min"});
        log.row_text(20, "validation loss {:.1f}", 1.5);
        log.progress("nothing of this");
        log.warning("after");
      },
      console(false));
  EXPECT_EQ(w.shown,
            "plain\n"
            "warning: before\n"
            "time UTC      step     loss     plan      left\n"
            "11:06:40         1   2.3456   1.0000         -\n"
            "11:06:40        20   1.3456   0.5000   5.1 min\n"
            "11:06:40        20  validation loss 1.5\n"
            "11:06:40  warning: after\n");
  EXPECT_EQ(w.kept, w.shown);
}

TEST(Log, TheHeaderIsRepeatedAfterAScreen) {
  const Written w = written(
      [](Log& log) {
        log.begin_table("step", columns);
        for (int i = 0; i < 60; ++i) log.row(i, {"1", "2", "3"});
      },
      console(false));
  EXPECT_EQ(count(w.kept, "time UTC"), 3u) << w.kept;
}

TEST(Log, ANewDayIsNamed) {
  const Written w = written(
      [](Log& log) {
        log.note("today");
        clock_of_test += 24 * 3600;
        log.note("tomorrow");
        log.note("still");
      },
      console(false));
  EXPECT_EQ(w.kept, "11:06:40  today\n2026-11-19 UTC\n11:06:40  tomorrow\n11:06:40  still\n");
}

TEST(Log, ATerminalHasProgressAndColorsAndTheFileHasNot) {
  const auto write = [](Log& log) {
    log.begin_table("step", columns);
    log.progress("step {} of {}", 1, 2);
    log.row(1, {"2.3456", "1.0000", "-"});
    log.warning("x");
  };
  const Written w = written(write, console(true, 40));
  EXPECT_EQ(w.shown,
            "\rstep 1 of 2\x1b[K"
            "\r\x1b[K\x1b[1mtime UTC      step     loss      left\x1b[0m\n"
            "11:06:40         1   2.3456         -\n"
            "11:06:40  \x1b[33mwarning: \x1b[0mx\n");
  EXPECT_EQ(w.kept, written(write, console(false)).shown);
  EXPECT_EQ(count(w.kept, "\x1b"), 0u);
}

TEST(Log, ProgressFitsTheTerminalAndIsErased) {
  const Written w =
      written([](Log& log) { log.progress("{}", std::string(50, 'x')); }, console(true, 20));
  EXPECT_EQ(w.shown, "\r" + std::string(19, 'x') + "\x1b[K\r\x1b[K");
}

TEST(Log, QuietShowsWarningsAndResultsAndTheFileHasAll) {
  const auto write = [](Log& log) {
    log.line("plain");
    log.begin_table("step", columns);
    log.row(1, {"2.3456", "1.0000", "-"});
    log.detail("more");
    log.progress("step 1");
    log.result("finished");
    log.warning("x");
  };
  const Written quiet = written(write, console(true), Verbosity::quiet);
  EXPECT_EQ(quiet.shown, "finished\n11:06:40  \x1b[33mwarning: \x1b[0mx\n");
  EXPECT_EQ(quiet.kept, written(write, console(false)).kept);
  EXPECT_EQ(count(quiet.kept, "more"), 0u);
  const Written verbose = written(write, console(false), Verbosity::verbose);
  EXPECT_EQ(count(verbose.kept, "11:06:40  more\n"), 1u);
}

TEST(Log, DispensableColumnsAreLeftOutUntilARowFits) {
  std::vector<LogColumn> many{{"loss", 7}};
  std::vector<std::string> cells{"1"};
  for (int i = 0; i < 20; ++i) {
    many.push_back({fmt::format("step_{}", i), 7, 1 + std::min(i, 19 - i)});
    cells.push_back(std::to_string(i));
  }
  many.push_back({"left", 8});
  cells.push_back("1 h");
  const auto write = [&](Log& log) {
    log.begin_table("step", many);
    log.row(1, cells);
  };
  const std::string kept = written(write, console(false)).kept;
  EXPECT_LE(kept.find('\n'), Log::width);
  for (const char* name : {"loss", "step_0 ", "step_19", "left"})
    EXPECT_EQ(count(kept, name), 1u) << name;
  EXPECT_EQ(count(kept, "step_9"), 0u);
  EXPECT_EQ(count(written(write, console(false), Verbosity::verbose).kept, "step_9"), 1u);
}

TEST(Log, OtherRanksAreSilent) {
  testing::internal::CaptureStdout();
  {
    Log log(false, Verbosity::verbose, console(true));
    log.begin_table("step", columns);
    log.row(1, {"1", "2", "3"});
    log.warning("x");
    log.progress("x");
    log.result("x");
  }
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace tern
