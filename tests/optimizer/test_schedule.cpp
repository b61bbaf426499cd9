// Learning rates at the steps where a schedule's definition fixes them.
#include <gtest/gtest.h>

#include <cmath>

#include "optimizer/schedule.hpp"

namespace tern::optimizer {
namespace {

deck::Optimizer with(const std::string& schedule, std::int64_t warmup = 10) {
  deck::Optimizer o;
  o.lr = 1.0;
  o.min_lr = 0.1;
  o.warmup_steps = warmup;
  o.schedule = schedule;
  o.decay_fraction = 0.2;
  return o;
}

TEST(Schedule, WarmsUpLinearlyToTheFullRate) {
  for (const char* schedule : {"cosine", "linear", "wsd", "constant"}) {
    EXPECT_DOUBLE_EQ(learning_rate(with(schedule), 1, 100), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate(with(schedule), 5, 100), 0.5);
    EXPECT_DOUBLE_EQ(learning_rate(with(schedule), 10, 100), 1.0);
  }
}

TEST(Schedule, EndsAtTheLeastRate) {
  for (const char* schedule : {"cosine", "linear", "wsd"})
    EXPECT_NEAR(learning_rate(with(schedule), 110, 110), 0.1, 1e-12) << schedule;
  EXPECT_DOUBLE_EQ(learning_rate(with("constant"), 110, 110), 1.0);
}

TEST(Schedule, OverWallTimeIsThatOverStepsOfOneLength) {
  for (const char* schedule : {"cosine", "linear", "wsd", "constant"})
    for (const int step : {1, 10, 11, 40, 90, 100, 110})
      EXPECT_NEAR(learning_rate(with(schedule), step, Elapsed{step / 110.0, 10 / 110.0}),
                  learning_rate(with(schedule), step, 110), 1e-12)
          << schedule << ", step " << step;
  // A warmup that took all the time, and a step that began after the end.
  EXPECT_NEAR(learning_rate(with("cosine"), 11, Elapsed{1, 1}), 1, 1e-12);
  EXPECT_NEAR(learning_rate(with("linear"), 90, Elapsed{1.01, 0.1}), 0.1, 1e-12);
}

TEST(Schedule, CosineAndLinearHalfWay) {
  EXPECT_NEAR(learning_rate(with("cosine"), 60, 110), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(with("linear"), 60, 110), 0.55, 1e-12);
  // A quarter of the way: (1 + cos(pi/4)) / 2 of the range is left.
  EXPECT_NEAR(learning_rate(with("cosine"), 35, 110), 0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2, 1e-12);
}

TEST(Schedule, WsdFallsOverTheLastShareOfAllSteps) {
  EXPECT_DOUBLE_EQ(learning_rate(with("wsd"), 80, 100), 1.0);
  EXPECT_NEAR(learning_rate(with("wsd"), 90, 100), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(with("wsd"), 100, 100), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(with("wsd", 0), 81, 100), 1 - 0.9 / 20, 1e-12);
}

TEST(Schedule, WithoutWarmupTheFirstStepIsOnTheCurve) {
  EXPECT_NEAR(learning_rate(with("linear", 0), 1, 100), 1 - 0.9 / 100, 1e-12);
}

}  // namespace
}  // namespace tern::optimizer
