// What is read through NVML, from a library that answers its calls, and what ranks make of it.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "device/nvml.hpp"
#include "fake_nvml.hpp"
#include "memory/views.hpp"
#include "profile/device_usage.hpp"
#include "report/rank_usage.hpp"

namespace tern::device {
namespace {

constexpr const char* first = "0000:1B:00.0";
constexpr const char* second = "0000:43:00.0";
constexpr const char* third = "0000:9D:00.0";

/// The library's state, reset.
FakeNvml& fake() {
  static void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  auto* state =
      library ? reinterpret_cast<FakeNvml* (*)()>(::dlsym(library, "fake_nvml")) : nullptr;
  if (!state) throw std::runtime_error("LD_LIBRARY_PATH does not lead to the tests' NVML");
  const int users = state()->users;
  *state() = {};
  state()->users = users;
  return *state();
}

TEST(Nvml, ReadsAGpuByItsBusAddress) {
  FakeNvml& nvml = fake();
  nvml.gpus[first] = {97, 651'500, 64, 12'000'000};
  nvml.gpus[second] = {3, 90'000, 31, 500};
  {
    const auto open = Nvml::open();
    ASSERT_NE(open, nullptr);
    EXPECT_EQ(nvml.users, 1);
    EXPECT_TRUE(open->knows(first));
    const Readings r = open->read(first);
    EXPECT_DOUBLE_EQ(r.utilization.value(), 0.97);
    EXPECT_DOUBLE_EQ(r.watts.value(), 651.5);
    EXPECT_DOUBLE_EQ(r.celsius.value(), 64);
    EXPECT_DOUBLE_EQ(r.joules.value(), 12000);
    EXPECT_DOUBLE_EQ(open->read(second).watts.value(), 90);
  }
  EXPECT_EQ(nvml.users, 0) << "shut down";
}

TEST(Nvml, WhatIsNotReportedIsAbsent) {
  FakeNvml& nvml = fake();
  nvml.gpus[first] = {50, 100'000, 40, 1000};
  nvml.gpus[first].counts_energy = false;
  const auto open = Nvml::open();
  ASSERT_NE(open, nullptr);
  EXPECT_FALSE(open->read(first).joules);
  EXPECT_TRUE(open->read(first).watts);
  EXPECT_FALSE(open->knows(third));
  const Readings none = open->read(third);
  EXPECT_FALSE(none.utilization || none.watts || none.celsius || none.joules);
  EXPECT_FALSE(open->connection(first, third) || open->pcie(third));
  EXPECT_EQ(open->nvlinks(third), 0);
}

TEST(Nvml, IsNullWithoutLibraryOrDriver) {
  EXPECT_EQ(Nvml::open("libnvidia-ml-that-is-not-here.so.1"), nullptr);
  FakeNvml& nvml = fake();
  nvml.starts = false;
  EXPECT_EQ(Nvml::open(), nullptr);
  EXPECT_EQ(nvml.users, 0);
  profile::DeviceMeter meter(nullptr, first);
  const profile::DeviceUsage usage = meter.read();
  EXPECT_FALSE(usage.gpu.watts || usage.energy_joules);
  EXPECT_GT(usage.memory_bytes, 0u) << "continues without NVML";
}

TEST(Nvml, ConnectionsAndLinks) {
  FakeNvml& nvml = fake();
  nvml.gpus[first].nvlinks = 18;
  nvml.gpus[second].switch_at = 1, nvml.gpus[second].nvlinks = 4;
  nvml.gpus[third].nvlink = false, nvml.gpus[third].pcie_generation = 3;
  nvml.gpus[third].pcie_lanes = 8;
  const auto open = Nvml::open();
  ASSERT_NE(open, nullptr);
  EXPECT_EQ(open->connection(first, second), Connection::nvlink);
  EXPECT_EQ(open->connection(first, third), Connection::pcie_switch);
  EXPECT_EQ(open->connection(second, third), Connection::host);
  EXPECT_EQ(open->nvlinks(first), 18);
  EXPECT_EQ(open->nvlinks(second), 4);
  EXPECT_NEAR(open->pcie(first)->gigabytes(), 63.0, 0.1) << "generation 5, 16 lanes";
  EXPECT_NEAR(open->pcie(third)->gigabytes(), 7.88, 0.01) << "generation 3, 8 lanes";
}

TEST(DeviceMeter, CountsEnergySinceItsStart) {
  FakeNvml& nvml = fake();
  nvml.gpus[first] = {97, 651'500, 64, 12'000'000};
  profile::DeviceMeter meter(Nvml::open(), first);
  nvml.gpus[first].millijoules += 2500;
  const profile::DeviceUsage usage = meter.read();
  EXPECT_DOUBLE_EQ(usage.energy_joules.value(), 2.5);
  EXPECT_DOUBLE_EQ(usage.gpu.celsius.value(), 64);
}

double value(const report::Values& values, const std::string& name) {
  for (const auto& [its, value] : values)
    if (its == name) return value;
  ADD_FAILURE() << name << " is missing";
  return -1;
}
bool has(const report::Values& values, const std::string& name) {
  return std::any_of(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
}

/// Every rank's GPU through a collective, on one and two ranks.
TEST(RankUsage, GathersEveryRanksGpu) {
  const auto group = comm::world();
  const auto rank = static_cast<unsigned>(group->rank());
  const double ranks = group->size();
  fake().gpus[first] = {90 - 40 * rank, 600'000 + 100'000 * rank, 60 + 10 * rank, 0};
  profile::DeviceMeter meter(Nvml::open(), first);
  report::RankInterval mine;
  mine.wall = 2.0 + rank, mine.waited = 0.5 - 0.25 * rank, mine.compute = 1.0 + 0.3 * rank;
  mine.usage = meter.read();
  mine.usage.memory_bytes = std::size_t{1} << (30 + rank);
  mine.usage.peak_bytes = std::size_t{1} << (33 + rank);
  mine.cores = 4 + 2.0 * rank;
  const report::RankUsage all(mine, *group);
  EXPECT_DOUBLE_EQ(all.wall(), 1 + ranks);
  EXPECT_DOUBLE_EQ(all.waited(), 0.5);
  const report::Values values = all.metrics();
  if (on_host) {
    EXPECT_FALSE(has(values, "system/gpu_memory_allocated")) << "it is the process's memory";
    EXPECT_FALSE(has(values, "system/gpu_memory_peak"));
  } else {
    EXPECT_DOUBLE_EQ(value(values, "system/gpu_memory_allocated"), ranks * 0x1p30);
    EXPECT_DOUBLE_EQ(value(values, "system/gpu_memory_peak"), ranks * 0x1p33);
  }
  EXPECT_DOUBLE_EQ(value(values, "system/gpu_utilization"), 0.9 - 0.2 * (ranks - 1));
  EXPECT_DOUBLE_EQ(value(values, "system/gpu_utilization_min"), 0.9 - 0.4 * (ranks - 1));
  EXPECT_DOUBLE_EQ(value(values, "system/gpu_power"), 600 + 50 * (ranks - 1));
  EXPECT_DOUBLE_EQ(value(values, "system/gpu_power_max"), 500 + 100 * ranks);
  EXPECT_DOUBLE_EQ(value(values, "system/gpu_temperature"), 60 + 5 * (ranks - 1));
  EXPECT_DOUBLE_EQ(value(values, "system/gpu_temperature_max"), 50 + 10 * ranks);
  EXPECT_DOUBLE_EQ(value(values, "system/gpu_hottest_rank"), ranks - 1);
  EXPECT_DOUBLE_EQ(value(values, "system/process_cores"), 3 + ranks);
  EXPECT_GT(value(values, "system/process_memory"), 0);
  if (ranks == 1) {
    EXPECT_FALSE(all.slowest()) << "nothing to compare with";
    EXPECT_FALSE(has(values, "system/slowest_rank"));
    return;
  }
  EXPECT_EQ(all.slowest()->rank, 1);
  EXPECT_NEAR(value(values, "system/slowest_rank_excess"), 0.3, 1e-12);
}

TEST(RankUsage, StagesAreNotComparedAndUnmeasuredIntervalsNotJudged) {
  const auto group = comm::world();
  report::RankInterval mine;
  mine.compute = 1.0 + group->rank();
  mine.stage = group->rank();
  EXPECT_FALSE(report::RankUsage(mine, *group).slowest());
  mine.stage = 0;
  mine.compute = 0;
  const report::RankUsage all(mine, *group);
  EXPECT_FALSE(all.slowest());
  EXPECT_FALSE(has(all.metrics(), "system/gpu_power")) << "no GPU, no metric";
}

}  // namespace
}  // namespace tern::device
