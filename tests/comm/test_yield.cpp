// How ranks wait: when they poll, yield and nap, and that MPI's wait loop asks for it.
#include <gtest/gtest.h>

#include <thread>

#include "comm/comm.hpp"
#include "comm/detail/yield.hpp"

namespace tern::comm {
namespace {

using detail::Patience;
using Kind = Patience::Kind;
using std::chrono::microseconds;
using std::chrono::milliseconds;

class Waiting : public testing::Test {
 protected:
  Patience patience;
  const detail::Clock::time_point entered{std::chrono::hours(1)};
  Patience::Pause after(Patience::Duration waited) {
    return patience.next(entered, entered + waited);
  }
};

TEST_F(Waiting, PollsBrieflyThenYieldsOnACoreOfItsOwn) {
  EXPECT_EQ(after(microseconds(5)).kind, Kind::poll);
  EXPECT_EQ(after(microseconds(50)).kind, Kind::yield);
  const auto pause = after(std::chrono::seconds(5));
  EXPECT_EQ(pause.kind, Kind::yield);
  patience.took(pause, microseconds(100), entered + std::chrono::seconds(5));
  EXPECT_EQ(after(std::chrono::seconds(6)).kind, Kind::yield);
}

TEST_F(Waiting, NapsOnASharedCoreForAsLongAsThePauseTells) {
  patience.took({Kind::yield}, milliseconds(4), entered);
  EXPECT_EQ(after(microseconds(5)).kind, Kind::poll);
  for (const auto& [waited, nap] : {std::pair{40, 20}, {400, 100}, {70'000, 250}}) {
    EXPECT_EQ(after(microseconds(waited)).kind, Kind::nap);
    EXPECT_EQ(after(microseconds(waited)).length, microseconds(nap)) << waited;
  }
  EXPECT_EQ(after(milliseconds(79)).kind, Kind::nap);
  EXPECT_EQ(after(milliseconds(81)).kind, Kind::yield);
}

TEST_F(Waiting, ANapThatEndsLateTellsSoToo) {
  const Patience::Pause nap{Kind::nap, microseconds(250)};
  patience.took(nap, microseconds(700), entered);
  EXPECT_EQ(after(milliseconds(1)).kind, Kind::yield);
  patience.took(nap, microseconds(2250), entered);
  EXPECT_EQ(after(milliseconds(39)).kind, Kind::nap);
  EXPECT_EQ(after(milliseconds(41)).kind, Kind::yield);
  patience.took({Kind::yield}, milliseconds(10), entered);
  patience.took({Kind::yield}, milliseconds(1), entered);
  EXPECT_EQ(after(milliseconds(199)).kind, Kind::nap) << "a shorter pause is no reason to forget";
}

TEST(Yields, CountOnlyWithinWaits) {
  const long before = detail::yields_while_waiting();
  std::this_thread::yield();
  EXPECT_EQ(detail::yields_while_waiting(), before);
  const detail::Wait wait({"a test"});
  std::this_thread::yield();
  EXPECT_EQ(detail::yields_while_waiting(), before + 1);
  std::thread([] { std::this_thread::yield(); }).join();
  EXPECT_EQ(detail::yields_while_waiting(), before + 1) << "another thread is not in this wait";
}

TEST(Yields, MpiYieldsToThisProgramWhileItWaits) {
  const auto group = world();
  if (group->size() == 1) return;
  bool seen = false;
  for (int attempt = 0; attempt < 1000 && !seen; ++attempt) {  // rank 0 may be the later one
    const long before = detail::yields_while_waiting();
    if (group->rank() == 1) std::this_thread::sleep_for(milliseconds(10));
    group->barrier();
    seen = group->any(group->rank() == 0 && detail::yields_while_waiting() > before);
  }
  EXPECT_TRUE(seen)
      << "does MPI call sched_yield()? OMPI_MCA_mpi_yield_when_idle=0 keeps it from that";
}

}  // namespace
}  // namespace tern::comm
