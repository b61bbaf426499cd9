#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/random.hpp"

namespace tern {
namespace {

TEST(Philox, MatchesTheKnownAnswersOfRandom123) {
  // kat_vectors of Random123: philox4x32 10, counter and key zero.
  const Random4 r = philox(0, static_cast<Stream>(0), 0, 0, 0);
  EXPECT_EQ(r.word[0], 0x6627e8d5u);
  EXPECT_EQ(r.word[1], 0xe169c58du);
  EXPECT_EQ(r.word[2], 0xbc57ac4cu);
  EXPECT_EQ(r.word[3], 0x9b00dbd8u);
}

TEST(Philox, EveryArgumentMatters) {
  std::set<std::uint32_t> seen;
  seen.insert(philox(1, Stream::test, 1, 1, 1).word[0]);
  seen.insert(philox(2, Stream::test, 1, 1, 1).word[0]);
  seen.insert(philox(1ull << 40, Stream::test, 1, 1, 1).word[0]);
  seen.insert(philox(1, Stream::dropout, 1, 1, 1).word[0]);
  seen.insert(philox(1, Stream::test, 2, 1, 1).word[0]);
  seen.insert(philox(1, Stream::test, 1ull << 33, 1, 1).word[0]);
  seen.insert(philox(1, Stream::test, 1, 2, 1).word[0]);
  seen.insert(philox(1, Stream::test, 1, 1, 2).word[0]);
  EXPECT_EQ(seen.size(), 8u);
}

TEST(Philox, UniformAndNormalMoments) {
  const int n = 200000;
  double mean = 0, normal_mean = 0, normal_square = 0;
  for (int i = 0; i < n; ++i) {
    const Random4 r = philox(7, Stream::test, 0, 0, static_cast<std::uint32_t>(i));
    const float u = uniform(r.word[0]);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    mean += u;
    const Normal2 z = normal2(r.word[1], r.word[2]);
    normal_mean += z.first;
    normal_square += static_cast<double>(z.first) * z.first;
  }
  // Five standard errors of each estimate; the draws are fixed, so this cannot fail by chance.
  EXPECT_NEAR(mean / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(normal_mean / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(normal_square / n, 1, 5 * std::sqrt(2.0 / n));
}

TEST(Normal2, IsFiniteAtTheEdgesOfTheRange) {
  for (const std::uint32_t word : {0u, 0xffffffffu}) {
    EXPECT_TRUE(std::isfinite(normal2(word, word).first));
    EXPECT_TRUE(std::isfinite(normal2(word, word).second));
  }
}

}  // namespace
}  // namespace tern
