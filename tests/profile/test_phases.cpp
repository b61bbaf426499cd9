// Phases and the device's meter.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "profile/device_usage.hpp"
#include "profile/phases.hpp"

namespace tern::profile {
namespace {

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

TEST(Phases, DevicePhasesAreFencedInSampledStepsOnly) {
  int fences = 0;
  Phases phases([&] { ++fences; });
  for (int step = 0; step < 10; ++step) {
    phases.begin_step(step % 5 == 0);
    { auto timed = phases.scope(Phase::forward); }
    { auto timed = phases.scope(Phase::data); }
  }
  EXPECT_EQ(fences, 4) << "before and after each of two sampled forwards";
}

TEST(Phases, SampledTimesAreScaledToAllSteps) {
  Phases phases;
  phases.begin_step(true);
  {
    auto timed = phases.scope(Phase::backward);
    pause();
  }
  const double one = phases.seconds(Phase::backward);
  EXPECT_GE(one, 0.02);
  for (int step = 0; step < 3; ++step) {
    phases.begin_step(false);
    auto timed = phases.scope(Phase::backward);
  }
  EXPECT_DOUBLE_EQ(phases.seconds(Phase::backward), 4 * one);
}

TEST(Phases, TimeBelongsToTheInnermostScope) {
  Phases phases;
  phases.begin_step(true);
  {
    auto outer = phases.scope(Phase::evaluation);
    auto inner = phases.scope(Phase::data);
    pause();
  }
  EXPECT_GE(phases.seconds(Phase::data), 0.02);
  EXPECT_GE(phases.seconds(Phase::evaluation), 0);
  EXPECT_LE(phases.seconds(Phase::data) + phases.seconds(Phase::evaluation), phases.total_seconds())
      << "nothing is counted twice";
}

TEST(Phases, AStepDoesNotBeginWithinAPhase) {
  Phases phases;
  auto timed = phases.scope(Phase::output);
  EXPECT_THROW(phases.begin_step(true), InternalError);
}

TEST(Phases, TableHasEveryPhaseOverAllRanks) {
  const auto group = comm::world();
  Phases phases;
  phases.begin_step(true);
  for (int i = 0; i <= group->rank(); ++i) {
    auto timed = phases.scope(Phase::optimizer);
    pause();
  }
  std::istringstream table(phases.table(*group));
  std::string header, line;
  std::getline(table, header);
  int lines = 0;
  double share_sum = 0;
  for (; std::getline(table, line); ++lines) {
    std::istringstream columns(line);
    std::string name;
    double low = -1, mean = -1, high = -1, share = -1;
    ASSERT_TRUE(columns >> name >> low >> mean >> high >> share) << line;
    EXPECT_LE(low, mean + 0.006) << line;
    EXPECT_LE(mean, high + 0.006) << line;
    if (name == "optimizer") {
      EXPECT_GE(high, 0.0199 * group->size()) << "the last rank's";
      EXPECT_GE(low, 0.0199);
    }
    if (name == "total")
      EXPECT_NEAR(share, 100, 0.01);
    else
      share_sum += share;
  }
  EXPECT_EQ(lines, int(phase_count) + 2);
  EXPECT_NEAR(share_sum, 100, 1.0);
}

/// Waiting for the last rank is no work, wherever it happens.
TEST(Phases, ComputeTimeLeavesOutWaitsForOtherRanks) {
  const auto group = comm::world();
  bool left_out = false;
  for (int attempt = 0; attempt < 20 && !left_out; ++attempt) {  // a busy machine makes pauses long
    Phases phases;
    EXPECT_EQ(phases.take_compute_seconds(), 0.0) << "no step yet";
    for (const bool sampled : {true, false}) {
      group->barrier();
      phases.begin_step(sampled);
      {
        auto timed = phases.scope(Phase::forward);
        pause();
      }
      auto timed = phases.scope(Phase::backward);
      if (group->rank() == 0) {
        auto data = phases.scope(Phase::data);
        for (int i = 0; i < 20; ++i) pause();
      }
      group->barrier();
    }
    const double seconds = phases.take_compute_seconds();
    EXPECT_GE(seconds, 0.02);
    EXPECT_EQ(phases.take_compute_seconds(), 0.0) << "taken";
    left_out = !group->any(seconds >= 0.3);
  }
  EXPECT_TRUE(left_out) << "neither 400 ms of data on rank 0 nor the others' wait for it";
}

TEST(DeviceMeter, SeesMemoryGrow) {
  DeviceMeter meter(0);
  const std::size_t before = meter.read().memory_bytes;
  Kokkos::View<char*> block("block", std::size_t(64) << 20);
  Kokkos::deep_copy(block, 1);
  const DeviceUsage after = meter.read();
  EXPECT_GE(after.memory_bytes, before + (std::size_t(60) << 20));
  EXPECT_GE(after.peak_bytes, after.memory_bytes);
}

}  // namespace
}  // namespace tern::profile
