// SIGKILL at random moments: processes that write checkpoints one after the other are killed, and
// each time the newest checkpoint must open, be consistent, and be no older than the one before the
// kill.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "checkpoint/fixture.hpp"

namespace tern::checkpoint::testing {
namespace {

constexpr std::int64_t forever = 1'000'000;

/// Writes the steps after `step`, each twice (so that half of the writes replace one), until
/// killed.
[[noreturn]] void write_on(const fs::path& runs, int rank, int ranks, std::int64_t step) {
  try {
    Log log(false);
    Store store(runs, rank, ranks, 2, log, 60.0);
    const auto tensors = small_tensors();
    for (std::int64_t half = 2 * step + 1; half < forever; ++half) {
      const std::int64_t now = (half + 1) / 2;
      const auto values = values_of(tensors, now);
      save(store, header_of(now), tensors, pieces_of(values, rank, ranks));
      if (!store.wait()) ::_exit(2);
      if (now % 5 == 0) store.evaluated(now, {{"loss", 1.0 / static_cast<double>(now)}}, true);
    }
  } catch (const std::exception& error) {
    std::cerr << "rank " << rank << ": " << error.what() << std::endl;
  }
  ::_exit(3);
}

void pause_us(std::uint32_t microseconds) { ::usleep(microseconds); }

struct Tally {
  int kills = 0, interrupted = 0;
};

/// Starts the ranks, kills them one by one at random moments, in random order.
void run_and_kill(const fs::path& runs, int ranks, std::int64_t step, std::uint32_t round,
                  Tally& tally) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) write_on(runs, rank, ranks, step);
    children.push_back(child);
  }
  for (std::uint32_t i = 0; !children.empty(); ++i) {
    const Random4 random = philox(2026, Stream::test, round, i, static_cast<std::uint32_t>(ranks));
    // First some tens of milliseconds, the other ranks soon after: as mpirun ends them.
    pause_us(i == 0 ? 1000 + random.word[0] % (ranks == 1 ? 40'000 : 120'000)
                    : random.word[0] % 10'000);
    const std::size_t victim = random.word[1] % children.size();
    ::kill(children[victim], SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(children[victim], &status, 0), children[victim]);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a rank ended by itself, status " << status;
    children.erase(children.begin() + static_cast<std::ptrdiff_t>(victim));
    ++tally.kills;
  }
}

bool interrupted(const fs::path& runs) {
  for (const std::string& name : fs::exists(runs) ? names_in(runs) : std::vector<std::string>{})
    if (name.starts_with("step_") && name.find('.') != std::string::npos) return true;
  return false;
}

class Kill : public ::testing::TestWithParam<std::pair<int, int>> {};  // ranks, rounds

TEST_P(Kill, NeverCostsACheckpoint) {
  const auto [ranks, rounds] = GetParam();
  const Scratch folder;
  const fs::path runs = folder.path() / "checkpoints";
  Log log;
  log.open(folder.path() / "log.txt");
  Tally tally;
  std::int64_t step = 0;
  for (int round = 0; round < rounds; ++round) {
    run_and_kill(runs, ranks, step, static_cast<std::uint32_t>(round), tally);
    if (HasFatalFailure()) return;
    tally.interrupted += interrupted(runs);
    const auto reader = open_newest(runs, log);
    if (!reader) {
      ASSERT_EQ(step, 0) << "round " << round << ": the checkpoint of step " << step << " is lost";
      continue;
    }
    ASSERT_GE(reader->header().step, step) << "round " << round;
    ASSERT_TRUE(consistent(*reader, small_tensors())) << "round " << round;
    step = reader->header().step;
  }
  std::cout << tally.kills << " kills in " << rounds << " rounds of " << ranks << " ranks, "
            << tally.interrupted << " during a write, newest step " << step << std::endl;
  EXPECT_EQ(read_file(folder.path() / "log.txt"), "") << "a visible checkpoint was not usable";
  EXPECT_EQ(tally.kills, rounds * ranks);
  EXPECT_GT(step, 0);
  EXPECT_GT(tally.interrupted, rounds / 4) << "the kills missed the writes";
  const Store store(runs, 0, 1, 2, log);
  EXPECT_FALSE(interrupted(runs)) << "leftovers stay";
}

INSTANTIATE_TEST_SUITE_P(Ranks, Kill, ::testing::Values(std::pair(1, 250), std::pair(4, 60)));

}  // namespace
}  // namespace tern::checkpoint::testing
