// Fractions and their 95% intervals, whose bounds x solve (hits / of - x)^2 = z^2 x (1 - x) / of:
// here to 40 digits.
#include <gtest/gtest.h>

#include "answer/interval.hpp"

namespace tern::answer {
namespace {

void expect_interval(std::int64_t hits, std::int64_t of, double low, double high) {
  const Interval interval = wilson(hits, of);
  EXPECT_NEAR(interval.low, low, 1e-9) << hits << " of " << of;
  EXPECT_NEAR(interval.high, high, 1e-9) << hits << " of " << of;
}

TEST(Interval, Wilson) {
  expect_interval(0, 0, 0, 1);
  expect_interval(0, 10, 0.0000000000, 0.2775327999);
  expect_interval(10, 10, 0.7224672001, 1.0000000000);
  expect_interval(1, 4, 0.0455872608, 0.6993581574);
  expect_interval(162, 1319, 0.1061939562, 0.1416372987);
}

TEST(Interval, AddsAFractionAndItsInterval) {
  nlohmann::ordered_json record{{"problems", 4}};
  add_fraction(record, "exact_match", 1, 4);
  ASSERT_EQ(record.size(), 3u);
  EXPECT_EQ(record["exact_match"], 0.25);
  const Interval interval = wilson(1, 4);
  EXPECT_EQ(record["exact_match_95"], (nlohmann::ordered_json{interval.low, interval.high}));
}

}  // namespace
}  // namespace tern::answer
