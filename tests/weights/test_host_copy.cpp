// Copies from a device array to scattered host memory: directly where the array is on the host, and
// through buffers smaller than, as large as and larger than the runs.
#include "weights/host_copy.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace tern::weights {
namespace {

/// Elements i of an array of `n` hold i; every `gap`-th element is in no run; runs of `length`
/// go to the host in reverse order.
void expect_copied(HostCopy& host_copy, std::size_t n, std::size_t length, std::size_t gap) {
  Arena arena((n + 4096) * sizeof(float) + (1 << 16));
  const ops::Context context = ops::make_context(arena, false, "auto");
  const Vector<float> array = arena.vector<float>("array", Term::parameters, n);
  HostVector<float> numbers("numbers", n);
  std::iota(numbers.data(), numbers.data() + n, 0.0f);
  Kokkos::deep_copy(array, numbers);
  std::vector<float> result(n, -1);
  std::vector<Run> runs;
  for (std::size_t at = gap; at < n; at += length + gap) {
    const std::size_t count = std::min(length, n - at);
    runs.insert(runs.begin() + runs.size() / 2, {{at, count}, result.data() + n - at - count});
  }
  host_copy.copy(context, array, runs);
  std::vector<float> expected(n, -1);
  for (const Run& run : runs)
    for (std::size_t i = 0; i < run.count; ++i)
      expected[static_cast<std::size_t>(run.to - result.data()) + i] =
          static_cast<float>(run.first + i);
  EXPECT_EQ(result, expected) << n << " elements, runs of " << length << ", gaps of " << gap;
}

TEST(HostCopy, RunsOfAnyLength) {
  for (const std::size_t chunk : {1, 7, 64, 100000}) {
    HostCopy staged(true, chunk);  // used again, as by each checkpoint
    for (const std::size_t n : {1, 64, 1000})
      for (const std::size_t length : {1, 3, 64, 999})
        for (const std::size_t gap : {0, 1, 200}) expect_copied(staged, n, length, gap);
  }
  HostCopy direct;
  expect_copied(direct, 1000, 64, 5);
}

TEST(HostCopy, NoRuns) {
  HostCopy staged(true, 16);
  expect_copied(staged, 10, 3, 20);
}

}  // namespace
}  // namespace tern::weights
