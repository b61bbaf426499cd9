// The directory of a run: one process at a time, refused with the owner's name; what a killed owner
// leaves blocks nobody; the space that checkpoints need.
#include "job/run_directory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/error.hpp"
#include "scratch.hpp"

namespace tern::job {
namespace {

using test::Scratch;

/// A process that holds the lock until it is killed.
pid_t start_owner(const std::filesystem::path& directory) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const RunLock lock(directory);
      [[maybe_unused]] const auto written = ::write(ready[1], "x", 1);
      while (true) ::pause();
    } catch (const std::exception&) {
      ::_exit(1);
    }
  }
  char byte;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

TEST(RunLock, RefusesASecondProcessAndOutlivesNoKill) {
  const Scratch scratch;
  const pid_t owner = start_owner(scratch.path());
  try {
    const RunLock second(scratch.path());
    ADD_FAILURE() << "two processes hold it";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(fmt::format("process {} on ", owner)),
              std::string::npos)
        << error.what();
  }
  ::kill(owner, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(owner, &status, 0), owner);
  const RunLock next(scratch.path());
}

TEST(RunLock, ALockOfOtherTypesIsNobodys) {
  const Scratch scratch;
  for (const char* text : {R"({"host": 5})", R"({"process": "a"})", R"({"process": 1e300})",
                           R"({"host": [], "process": {}})", "[]", "null", "\x1b"}) {
    scratch.write(".lock", text);
    EXPECT_NO_THROW(RunLock(scratch.path())) << text;
  }
}

TEST(RunLock, IsNotWrittenThroughALink) {
  const Scratch scratch;
  scratch.write("outside", "the user's");
  std::filesystem::create_directory(scratch / "run");
  for (const char* target : {"outside", "absent"}) {
    std::filesystem::create_symlink(scratch / target, scratch / "run/.lock");
    test::expect_user_error([&] { RunLock(scratch / "run"); }, {"run/.lock", "symbolic link"});
    std::filesystem::remove(scratch / "run/.lock");
  }
  EXPECT_EQ(scratch.read("outside"), "the user's");
  EXPECT_FALSE(std::filesystem::exists(scratch / "absent"));
}

TEST(RunLock, IsReleasedAtItsEnd) {
  const Scratch scratch;
  { const RunLock first(scratch.path()); }
  RunLock second(scratch.path());
  EXPECT_THROW(RunLock(scratch.path()), UserError);
  const RunLock moved = std::move(second);
  EXPECT_THROW(RunLock(scratch.path()), UserError);
}

TEST(Space, IsShortBeforeTheDiskIsFull) {
  deck::Checkpoint rules;
  rules.keep = 2;  // held: two, the best, and one that is being written
  EXPECT_EQ(shortage_of_space(400, 100, rules, 0), "");
  EXPECT_NE(shortage_of_space(399, 100, rules, 0).find("room for 3 more"), std::string::npos);
  EXPECT_EQ(shortage_of_space(100, 100, rules, 3), "");
  EXPECT_NE(shortage_of_space(99, 100, rules, 4), "");  // not one can be written
  rules.keep_best = false;
  EXPECT_EQ(shortage_of_space(300, 100, rules, 0), "");
}

TEST(RunLock, NeedsAFolderToWriteIn) {
  const Scratch scratch;
  EXPECT_THROW(RunLock(scratch.path() / "none"), UserError);
}

}  // namespace
}  // namespace tern::job
