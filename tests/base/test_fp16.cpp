#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/types.hpp"

namespace tern {
namespace {

fp16 of_bits(std::uint32_t bits) {
  fp16 value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

/// The number of a finite code by its definition (IEEE 754-2019, section 3.4).
double number(std::uint32_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Fp16, EveryCodeIsItsNumberAndSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float wide = of_bits(bits);
    if ((bits & 0x7fff) > 0x7c00) {
      ASSERT_TRUE(std::isnan(wide) && std::isnan(float(fp16(wide)))) << bits;
      continue;
    }
    if ((bits & 0x7fff) < 0x7c00) {
      ASSERT_EQ(double(wide), number(bits)) << bits;
    }
    ASSERT_EQ(fp16(wide).bits, bits);
  }
}

// Between two neighbors the half-way point goes to the even one, and its float neighbors to the
// nearer one, from the subnormal numbers to infinity.
TEST(Fp16, RoundsToNearestEven) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::uint32_t low = 0; low < 0x7c00; ++low) {
    const double next = low + 1 < 0x7c00 ? number(low + 1) : 65536;
    const auto middle = static_cast<float>((number(low) + next) / 2);
    ASSERT_EQ(fp16(middle).bits, low % 2 == 0 ? low : low + 1);
    ASSERT_EQ(fp16(-middle).bits, 0x8000u | (low % 2 == 0 ? low : low + 1));
    ASSERT_EQ(fp16(std::nextafter(middle, 0.0f)).bits, low);
    ASSERT_EQ(fp16(std::nextafter(middle, infinity)).bits, low + 1);
  }
}

TEST(Fp16, OverflowAndSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float(fp16(65504.0f)), 65504.0f);
  EXPECT_EQ(float(fp16(65519.9f)), 65504.0f);
  EXPECT_EQ(float(fp16(65520.0f)), infinity);
  EXPECT_EQ(float(fp16(-std::numeric_limits<float>::max())), -infinity);
  EXPECT_EQ(float(fp16(infinity)), infinity);
  EXPECT_EQ(fp16(0x1p-25f).bits, 0u);  // tie with 0, even
  EXPECT_EQ(fp16(std::numeric_limits<float>::denorm_min()).bits, 0u);
  EXPECT_EQ(fp16(-0.0f).bits, 0x8000u);
  // A NaN whose payload is in the lower half only must not become an infinity.
  EXPECT_TRUE(std::isnan(float(fp16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace tern
