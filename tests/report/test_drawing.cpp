// Curves as they are drawn, and the program that draws them.
#include <gtest/gtest.h>

#include <algorithm>

#include "report/detail/history.hpp"
#include "report/detail/process.hpp"
#include "scratch.hpp"

namespace tern::report {
namespace {

using test::Scratch;

/// By what it uses of a processor, and by how long it uses none: not by the clock.
TEST(Drawing, AProgramThatHangsIsEnded) {
  Scratch run;
  const auto ending = [&](std::vector<std::string> command, detail::Limit limit) {
    return detail::run_program(command, run / "out.txt", limit);
  };
  constexpr std::chrono::hours hour(1);
  EXPECT_EQ(ending({"sleep", "600"}, {hour, std::chrono::seconds(0)}), detail::Ending::timed_out);
  EXPECT_EQ(ending({"sh", "-c", "while :; do :; done"}, {std::chrono::milliseconds(50), hour}),
            detail::Ending::timed_out);
  EXPECT_EQ(ending({"false"}, {hour, hour}), detail::Ending::failed);
  EXPECT_EQ(ending({"echo", "$HOME; x"}, {hour, hour}), detail::Ending::success);
  EXPECT_EQ(run.read("out.txt"), "$HOME; x\n") << "no shell in between";
}

TEST(Drawing, LongRunsAreThinnedWithoutLosingSpikes) {
  detail::Curve curve;
  for (int i = 0; i < 100000; ++i) {
    curve.step.push_back(i);
    curve.value.push_back(i == 54321 ? 9.0 : i == 77777 ? -9.0 : 1.0);
  }
  const detail::Curve thin = detail::downsampled(curve, 2000);
  EXPECT_LE(thin.value.size(), 2000u);
  const auto spike = std::find(thin.value.begin(), thin.value.end(), 9.0);
  ASSERT_NE(spike, thin.value.end());
  EXPECT_EQ(thin.step[std::size_t(spike - thin.value.begin())], 54321);
  EXPECT_NE(std::find(thin.value.begin(), thin.value.end(), -9.0), thin.value.end());
  EXPECT_TRUE(std::is_sorted(thin.step.begin(), thin.step.end()));
  EXPECT_EQ(detail::downsampled(thin, 2000).value, thin.value);
}

TEST(Drawing, SmoothingKeepsStraightLinesStraight) {
  detail::Curve line;
  for (int i = 0; i < 50; ++i) line.step.push_back(i), line.value.push_back(2.0 * i);
  const detail::Curve smooth = detail::smoothed(line, 8);
  for (std::size_t i = 0; i < 46; ++i) EXPECT_NEAR(smooth.value[i], line.value[i], 1e-9);
}

}  // namespace
}  // namespace tern::report
