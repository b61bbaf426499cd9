#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/types.hpp"

namespace tern {
namespace {

TEST(Bf16, ValuesWithSevenMantissaBitsAreKept) {
  for (const float value :
       {0.0f, -0.0f, 1.0f, -2.5f, 1.9921875f, 0x1p-126f, 0x1p-133f, 3.3895314e38f})
    EXPECT_EQ(static_cast<float>(bf16(value)), value);
}

TEST(Bf16, RoundsToNearestEven) {
  const float ulp = 0x1p-7f;
  EXPECT_EQ(static_cast<float>(bf16(1 + ulp / 2)), 1.0f);            // tie, to even
  EXPECT_EQ(static_cast<float>(bf16(1 + ulp * 1.5f)), 1 + 2 * ulp);  // tie, to even
  EXPECT_EQ(static_cast<float>(bf16(1 + ulp * 0.50001f)), 1 + ulp);
  EXPECT_EQ(static_cast<float>(bf16(1 + ulp * 0.49999f)), 1.0f);
}

TEST(Bf16, EveryPatternSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    bf16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const float wide = value;
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(static_cast<float>(bf16(wide))));
    else
      ASSERT_EQ(bf16(wide).bits, bits);
  }
}

TEST(Bf16, OverflowAndSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(bf16(infinity)), infinity);
  EXPECT_EQ(static_cast<float>(bf16(-infinity)), -infinity);
  EXPECT_EQ(static_cast<float>(bf16(std::numeric_limits<float>::max())), infinity);
  // A NaN whose payload is in the lower half only must not become an infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace tern
