// A disk that takes no more: the process' limit on file sizes makes writes fail with EFBIG, at any
// byte and without privileges.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "checkpoint/fixture.hpp"

namespace tern::checkpoint::testing {
namespace {

/// Files of this process end at `bytes` as long as this lives.
class FullDisk {
 public:
  explicit FullDisk(std::size_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    if (::getrlimit(RLIMIT_FSIZE, &before_) != 0) throw std::runtime_error("getrlimit failed");
    const rlimit limit{bytes, before_.rlim_max};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) throw std::runtime_error("setrlimit failed");
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(DiskFull, LeavesThePreviousCheckpointAndTheRunAlone) {
  const Scratch folder;
  const fs::path runs = folder.path() / "checkpoints";
  const auto tensors = sample_tensors();
  Log log;
  log.open(folder.path() / "log.txt");
  Store store(runs, 0, 1, 1, log);
  save(store, tensors, 1);
  ASSERT_TRUE(store.wait());
  const auto whole = fs::file_size(runs / "step_00000001" / "checkpoint.h5");
  std::size_t failures = 0;
  for (const std::size_t limit :
       {std::size_t{0}, std::size_t{1}, std::size_t{512}, std::size_t{4096}, std::size_t{100'000},
        whole / 4, whole / 2, whole - 5000, whole - 1}) {
    {
      const FullDisk full(limit);
      save(store, tensors, 2);
      store.evaluated(2, {{"loss", 0}}, true);
      EXPECT_FALSE(store.wait()) << limit;
    }
    ++failures;
    EXPECT_EQ(names_in(runs), std::vector<std::string>{"step_00000001"}) << limit;
    EXPECT_TRUE(consistent(*open_newest(runs, log), tensors));
  }
  save(store, tensors, 3);
  EXPECT_TRUE(store.wait());
  EXPECT_EQ(names_in(runs), std::vector<std::string>{"step_00000003"});
  EXPECT_TRUE(consistent(*open_newest(runs, log), tensors));
  // One line each: step, path, reason, remedy. (Below 512 bytes the log could not grow either.)
  const std::string text = read_file(folder.path() / "log.txt");
  EXPECT_GE(lines_in(text), failures - 3) << text;
  EXPECT_LE(lines_in(text), failures) << text;
  for (const char* part : {"the checkpoint of step 2 was not written", "step_00000002.tmp-",
                           "File too large", "free space"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Removed, DirectoriesAreNotTakenForAFullDisk) {
  const Scratch folder;
  Log log;
  log.open(folder.path() / "log.txt");
  Store store(folder.path() / "checkpoints", 0, 1, 1, log);
  fs::remove_all(folder.path() / "checkpoints");
  save(store, sample_tensors(), 1);
  EXPECT_FALSE(store.wait());
  const std::string text = read_file(folder.path() / "log.txt");
  EXPECT_NE(text.find("moved or removed"), std::string::npos) << text;
  EXPECT_EQ(text.find("free space"), std::string::npos) << text;
}

/// Saves steps 1, 2, 3 as rank 1 of 2; the disk is full for this rank at step 2. Ends the process.
[[noreturn]] void second_rank(const fs::path& runs, const std::vector<Tensor>& tensors) {
  Log log(false);
  bool good = true;
  {
    Store store(runs, 1, 2, 2, log, 30.0);
    for (const std::int64_t step : {1, 2, 3}) {
      const auto values = values_of(tensors, step);
      std::optional<FullDisk> full;
      if (step == 2) full.emplace(100'000);
      save(store, header_of(step), tensors, pieces_of(values, 1, 2));
      good = good && store.wait() == (step != 2);
    }
  }
  ::_exit(good ? 0 : 1);
}

TEST(DiskFull, OfOneRankIsReportedByTheFirst) {
  const Scratch folder;
  const fs::path runs = folder.path() / "checkpoints";
  const auto tensors = sample_tensors();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) second_rank(runs, tensors);
  Log log;
  log.open(folder.path() / "log.txt");
  Store store(runs, 0, 2, 2, log, 30.0);
  for (const std::int64_t step : {1, 2, 3}) {
    const auto values = values_of(tensors, step);
    save(store, header_of(step), tensors, pieces_of(values, 0, 2));
    EXPECT_EQ(store.wait(), step != 2) << step;
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(names_in(runs),
            (std::vector<std::string>{".session", "step_00000001", "step_00000003"}));
  EXPECT_TRUE(consistent(*open_newest(runs, log), tensors));
  const std::string text = read_file(folder.path() / "log.txt");
  EXPECT_NE(text.find("rank 1: cannot write"), std::string::npos) << text;
  EXPECT_EQ(lines_in(text), 1u) << text;
}

}  // namespace
}  // namespace tern::checkpoint::testing
