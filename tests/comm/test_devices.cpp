// Which device of its node each rank takes, and what is said where that cannot be.
#include <gtest/gtest.h>

#include <string>

#include "comm/detail/devices.hpp"
#include "refusal.hpp"

namespace tern::comm::detail {
namespace {

using test::refusal;

TEST(Devices, RanksTakeThoseOfTheirNumberOrTheOneThatTheySee) {
  EXPECT_EQ(device_of(3, 8, ""), 3);
  EXPECT_EQ(device_of(3, 4, ""), 3);
  EXPECT_EQ(device_of(3, 1, ""), 0);
}

TEST(Devices, NoneIsSaidWithTheDriversReason) {
  const std::string text = refusal([] { device_of(0, 0, "driver too old"); });
  EXPECT_NE(text.find("no GPU is visible (driver too old)"), std::string::npos) << text;
}

TEST(Devices, TwoRanksOfOneAreRefused) {
  EXPECT_EQ(refusal([] { require_own_devices({"a", "b", "c"}); }), "taken");
  const std::string text = refusal([] { require_own_devices({"a", "b", "a", "b"}); });
  EXPECT_NE(text.find("4 ranks on this node share 2 GPUs"), std::string::npos) << text;
  EXPECT_NE(text.find("srun --ntasks-per-node=2"), std::string::npos) << text;
}

}  // namespace
}  // namespace tern::comm::detail
