#include <gtest/gtest.h>

#include <limits>

#include "words/numbers.hpp"
#include "words/suggestion.hpp"

namespace tern {
namespace {

TEST(Numbers, HaveTheDigitsThatTheyDeserve) {
  EXPECT_EQ(rounded(472'735.2), "472,700");
  EXPECT_EQ(rounded(1'754'182), "1,754,000");
  EXPECT_EQ(rounded(999.96), "1000");
  EXPECT_EQ(rounded(9'999.6), "10,000");
  EXPECT_EQ(rounded(1'234.5), "1,235");
  EXPECT_EQ(rounded(13.1072), "13.11");
  EXPECT_EQ(rounded(0.5), "0.5");
  EXPECT_EQ(rounded(-472'735.2), "-472,700");
  EXPECT_EQ(rounded(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'319), "1,319");
  EXPECT_EQ(grouped(-1'234'567), "-1,234,567");
  EXPECT_EQ(counted(1, "sample"), "1 sample");
  EXPECT_EQ(counted(0, "sample"), "0 samples");
  EXPECT_EQ(counted(1'319, "sample"), "1,319 samples");
  EXPECT_EQ(token_count(4'756), "4,756 tokens");
  EXPECT_EQ(token_count(9'630'000), "9.6 M tokens");
}

TEST(Duration, HasTheUnitOfItsSize) {
  EXPECT_EQ(duration(0), "0.0 s");
  EXPECT_EQ(duration(9.94), "9.9 s");
  EXPECT_EQ(duration(9.96), "10 s");
  EXPECT_EQ(duration(119.4), "119 s");
  EXPECT_EQ(duration(120), "2.0 min");
  EXPECT_EQ(duration(5400), "90.0 min");
  EXPECT_EQ(duration(7200), "2.0 h");
}

TEST(Suggestion, IsTheNearestNameIfOneIsNear) {
  const std::vector<std::string> names{"dry-run", "device", "list"};
  EXPECT_EQ(nearest("dryrun", names), "dry-run");
  EXPECT_EQ(nearest("LIST", names), "list");
  EXPECT_EQ(nearest("something-else", names), "");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace tern
