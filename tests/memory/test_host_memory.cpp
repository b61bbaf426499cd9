#include <gtest/gtest.h>

#include "memory/arena.hpp"
#include "memory/host_memory.hpp"
#include "scratch.hpp"

namespace tern {
namespace {

constexpr std::size_t gib = std::size_t{1} << 30;

std::string text(std::size_t bytes) { return std::to_string(bytes) + "\n"; }

/// Files of /proc and /sys of a host with 64 GiB: 1 GiB free, 40 GiB available.
class Host : public ::testing::Test {
 protected:
  Host() {
    root.write("proc/meminfo",
               "MemTotal:       67108864 kB\nMemFree:         1048576 kB\n"
               "MemAvailable:   41943040 kB\nCached:         38797312 kB\n");
  }

  void member(const std::string& line, const std::string& mount) const {
    root.write("proc/self/cgroup", line + "\n");
    root.write("proc/self/mountinfo", "23 1 0:21 / /proc rw - proc proc rw\n" + mount + "\n");
  }
  void version2(const std::string& path, const std::string& shown = "/") const {
    member("0::" + path, "30 24 0:27 " + shown + " /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw");
  }
  void group2(const std::string& folder, const std::string& max, const std::string& high,
              std::size_t current, std::size_t files) const {
    const std::string at = "sys/fs/cgroup" + folder + "/memory.";
    root.write(at + "max", max), root.write(at + "high", high);
    root.write(at + "current", text(current));
    root.write(at + "stat", "anon 1\nfile 999\ninactive_file " + text(files / 2) + "active_file " +
                                text(files / 4) + "slab_reclaimable " + text(files / 4));
  }
  void group1(const std::string& folder, std::size_t limit, std::size_t usage,
              std::size_t files) const {
    const std::string at = "sys/fs/cgroup/memory" + folder + "/memory.";
    root.write(at + "limit_in_bytes", text(limit)), root.write(at + "usage_in_bytes", text(usage));
    root.write(at + "stat", "inactive_file 7\ntotal_inactive_file " + text(files / 2) +
                                "total_active_file " + text(files / 2));
  }
  void expect(double available, double total, const std::string& limit) const {
    const HostMemory memory = host_memory(root);
    EXPECT_EQ(static_cast<double>(memory.available) / gib, available);
    EXPECT_EQ(static_cast<double>(memory.total) / gib, total);
    EXPECT_EQ(memory.limit, limit.empty() ? "" : root / limit);
  }

  test::Scratch root;
};

TEST_F(Host, PagesOfFilesAreAvailable) { expect(40, 64, ""); }

TEST_F(Host, LimitsOfVersion2) {
  version2("/user.slice/job");
  group2("/user.slice/job", "max\n", "max\n", 3 * gib, gib);
  group2("/user.slice", "max\n", "max\n", 3 * gib, gib);
  expect(40, 64, "");
  group2("/user.slice/job", text(16 * gib), "max\n", 6 * gib, 4 * gib);
  expect(14, 16, "sys/fs/cgroup/user.slice/job/memory.max");
  group2("/user.slice/job", text(16 * gib), text(12 * gib), 6 * gib, 4 * gib);
  expect(10, 12, "sys/fs/cgroup/user.slice/job/memory.high");
  group2("/user.slice", text(9 * gib), "max\n", 8 * gib, 4 * gib);  // other jobs use 2 GiB of it
  expect(5, 9, "sys/fs/cgroup/user.slice/memory.max");
  group2("/user.slice", text(9 * gib), "max\n", 30 * gib, 4 * gib);  // lowered below its use
  expect(0, 9, "sys/fs/cgroup/user.slice/memory.max");
}

TEST_F(Host, LimitsOfVersion1) {
  member("9:name=systemd:/\n4:cpu,memory:/slurm/uid_7/job_3\n0::/",
         "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
         "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
         "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  constexpr std::size_t unlimited = 0x7ffffffffffff000;
  group1("/slurm/uid_7/job_3", unlimited, gib, 0);
  group1("/slurm", unlimited, gib, 0);
  expect(40, 64, "");
  group1("/slurm/uid_7", 8 * gib, 5 * gib, 3 * gib);
  expect(6, 8, "sys/fs/cgroup/memory/slurm/uid_7/memory.limit_in_bytes");
}

/// Docker mounts the container's group as the root, with or without its own view of the path.
TEST_F(Host, LimitsInContainers) {
  group2("", text(4 * gib), "max\n", 2 * gib, gib);
  for (const auto& [path, shown] : std::initializer_list<std::pair<const char*, const char*>>{
           {"/", "/"}, {"/docker/ab", "/docker/ab"}, {"/../../other", "/"}, {"/docker/ab", "/x"}}) {
    version2(path, shown);
    expect(3, 4, "sys/fs/cgroup/memory.max");
  }
  version2("/docker/ab/inner", "/docker/ab");
  group2("/inner", text(2 * gib), "max\n", gib, 0);
  expect(1, 2, "sys/fs/cgroup/inner/memory.max");
}

TEST_F(Host, FilesThatSayNothing) {
  member("no colons", "no dash");
  expect(40, 64, "");
  version2("/gone");
  group2("", "\n", "lots\n", gib, 0);
  expect(40, 64, "");
  const test::Scratch empty;
  EXPECT_GT(host_memory(empty).available, 0u);
}

TEST(HostMemory, IsTheCapacityOfTheHost) {
  const HostMemory here = host_memory();
  EXPECT_GT(here.available, 0u);
  EXPECT_LE(here.available, here.total);
  if constexpr (on_host) {
    EXPECT_EQ(device_capacity().total_bytes, here.total);
  }
}

}  // namespace
}  // namespace tern
