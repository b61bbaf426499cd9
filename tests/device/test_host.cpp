// The host as its files in /proc and /sys describe it.
#include <gtest/gtest.h>

#include <vector>

#include "device/host.hpp"
#include "device/rapl.hpp"
#include "scratch.hpp"

namespace tern::device {
namespace {

using test::Scratch;

TEST(Rapl, CountersWrap) {
  Scratch root;
  const auto set = [&](const std::string& zone, const std::string& microjoules) {
    root.write(zone + "/energy_uj", microjoules + "\n");
  };
  EXPECT_FALSE(Rapl(root.path()).available());
  for (const char* zone : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"})
    root.write(std::string(zone) + "/max_energy_range_uj", "9000000\n");
  set("intel-rapl:0", "8000000"), set("intel-rapl:1", "0"), set("intel-rapl:0:0", "5000000");
  Rapl energy(root.path());
  ASSERT_TRUE(energy.available());
  EXPECT_EQ(energy.joules(), 0.0);
  set("intel-rapl:0", "1000000"), set("intel-rapl:1", "500000"), set("intel-rapl:0:0", "8000000");
  EXPECT_DOUBLE_EQ(energy.joules(), 2.5) << "2 J across the wrap and 0.5 J; parts are not added";
}

std::string logical(int processor, int package, int core, const char* flags) {
  return "processor\t: " + std::to_string(processor) +
         "\nmodel name\t: Some Processor @ 2.00GHz\ncpu MHz\t\t: 2500.000\nphysical id\t: " +
         std::to_string(package) + "\ncore id\t\t: " + std::to_string(core) +
         "\ncpu cores\t: 2\nflags\t\t: " + flags + "\n\n";
}

TEST(Processor, HyperthreadsAreCountedOnce) {
  Scratch root;
  std::string text;
  for (int i = 0; i < 8; ++i) text += logical(i, i / 4, i % 2, "fpu sse2 avx avx2 fma avx512f");
  root.write("cpuinfo", text);
  const Processor p = processor(root / "cpuinfo");
  EXPECT_EQ(p.name, "Some Processor @ 2.00GHz");
  EXPECT_EQ(p.cores, 4);
  EXPECT_DOUBLE_EQ(p.gigahertz, 2.5);
  EXPECT_DOUBLE_EQ(p.gflops(4), 4 * 2.5 * 64);
}

TEST(Processor, WhatIsUnknownIsZero) {
  Scratch root;
  root.write("cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.0\nFeatures\t: fp asimd\n");
  const Processor p = processor(root / "cpuinfo");
  EXPECT_EQ(p.cores, 1);
  EXPECT_EQ(p.gflops(1), 0);
  root.write("cpuinfo", logical(0, 0, 0, "sse2 avx avx2 fma"));
  EXPECT_EQ(processor(root / "cpuinfo").flops_per_cycle, 32);
}

TEST(Process, UsesMemoryAndTime) {
  const ProcessUsage before = process_usage();
  std::vector<char> block(std::size_t(64) << 20, 1);
  const double allocated = process_usage().cpu_seconds;
  double sum = 0;
  do {
    for (const char c : block) sum += c;
  } while (process_usage().cpu_seconds < allocated + 0.02);
  const ProcessUsage after = process_usage();
  EXPECT_GT(sum, 0);
  EXPECT_GE(after.resident_bytes, before.resident_bytes + (std::size_t(60) << 20));
  EXPECT_GE(after.peak_bytes, after.resident_bytes);
  std::vector<char>().swap(block);
  const ProcessUsage freed = process_usage();
  EXPECT_LT(freed.resident_bytes, after.resident_bytes);
  EXPECT_GE(freed.peak_bytes, after.peak_bytes);
  EXPECT_FALSE(allowed_processors().empty());
}

TEST(Locality, IsThatOfTheBusAddressInLowerCase) {
  Scratch root;
  root.write("0000:1b:00.0/numa_node", "1\n");
  root.write("0000:1b:00.0/local_cpulist", "56-111,168-223\n");
  const Locality near = locality("0000:1B:00.0", root.path());
  EXPECT_EQ(near.numa_node, 1);
  EXPECT_EQ(near.processors, "56-111,168-223");
  EXPECT_EQ(locality("0000:FF:00.0", root.path()).numa_node, -1);
  EXPECT_EQ(locality("", root.path()).processors, "");
}

}  // namespace
}  // namespace tern::device
