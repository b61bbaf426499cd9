// The estimate of the time left, fed with made times.
#include <gtest/gtest.h>

#include <cmath>

#include "campaign/training/time_left.hpp"

namespace tern {
namespace {

using campaign::TimeLeft;

deck::Deck deck_of(std::int64_t steps, std::int64_t evaluations, std::int64_t checkpoints) {
  deck::Deck deck;
  deck.campaign.max_steps = steps;
  deck.evaluation.every = evaluations, deck.checkpoint.every = checkpoints;
  return deck;
}

constexpr double rows = 8;

/// Steps of `seconds` each, after a first one of 100 s.
TimeLeft after(const deck::Deck& deck, int steps, double seconds) {
  TimeLeft left(deck);
  left.step(100, rows);
  for (int i = 1; i < steps; ++i) left.step(seconds, rows);
  return left;
}

TEST(TimeLeft, TheFirstStepOfAStartDoesNotCount) {
  const deck::Deck deck = deck_of(1000, 0, 0);
  EXPECT_FALSE(after(deck, 1, 2).seconds(1, 999 * rows, 100).has_value());
  TimeLeft left = after(deck, 11, 2);
  left.evaluated(5);  // to come at the end
  EXPECT_NEAR(*left.seconds(11, 989 * rows, 120), 989 * 2 + 5, 1e-9);
}

TEST(TimeLeft, OneSlowIntervalMovesItLittle) {
  const deck::Deck deck = deck_of(1000, 0, 0);
  TimeLeft left = after(deck, 300, 0.5);
  left.evaluated(0);
  const double steady = *left.seconds(300, 700 * rows, 0);
  EXPECT_NEAR(steady, 350, 1e-9);
  for (int i = 0; i < 10; ++i) left.step(3.5, rows);  // seven times as slow
  const double slowed = *left.seconds(310, 690 * rows, 0);
  EXPECT_GT(slowed, steady);
  EXPECT_LT(slowed, 1.3 * steady);  // the last interval alone says 690 x 3.5 = 2415
}

TEST(TimeLeft, AChangeThatLastsIsTakenUp) {
  // Short steps by time: 10 minutes of them leave 1/e of what was before.
  const deck::Deck deck = deck_of(1000000, 0, 0);
  TimeLeft left = after(deck, 40000, 0.1);  // over an hour
  left.evaluated(0);
  for (int i = 0; i < 3000; ++i) left.step(0.2, rows);  // 10 minutes
  const double row = *left.seconds(43000, 1000, 0) / 1000;
  const double before = 0.1 / rows, now = 0.2 / rows, old = std::exp(-1);
  // Weights of rows: the old steps are twice as many per second.
  EXPECT_NEAR(row, (before * 2 * old + now * (1 - old)) / (2 * old + 1 - old), 0.01 * now);
  // Long steps by their number: 100 of them, although 10 minutes have passed ten times.
  TimeLeft slow = after(deck_of(100000, 0, 0), 2000, 30);
  slow.evaluated(0);
  for (int i = 0; i < 100; ++i) slow.step(60, rows);
  EXPECT_NEAR(*slow.seconds(2100, 1000, 0) / 1000,
              (30 * std::exp(-1) + 60 * (1 - std::exp(-1))) / rows, 0.01 * 60 / rows);
}

TEST(TimeLeft, StepsOfMoreRowsTakeLonger) {
  deck::Deck deck = deck_of(100, 0, 0);
  TimeLeft left(deck);
  left.step(9, 2);
  for (int i = 0; i < 20; ++i) left.step(1, 2);
  left.evaluated(0);
  EXPECT_NEAR(*left.seconds(21, 79 * 16, 0), 79 * 8, 1e-9);
}

TEST(TimeLeft, EvaluationsAndCheckpointsAreCounted) {
  TimeLeft left = after(deck_of(100, 20, 30), 40, 1);
  left.evaluated(10);
  left.saved(3);
  // From step 40 on: evaluations at 40, 60 and 80, checkpoints of their own at 90, of both at 60,
  // and the evaluation at the end.
  EXPECT_NEAR(*left.seconds(40, 60 * rows, 0), 60 + 3 * 10 + 3 + 10, 1e-9);
  EXPECT_NEAR(*left.seconds(41, 59 * rows, 0), 59 + 2 * 10 + 3 + 10, 1e-9);
  EXPECT_NEAR(*left.seconds(90, 10 * rows, 0), 10 + 3 + 10, 1e-9);
  EXPECT_NEAR(*left.seconds(91, 9 * rows, 0), 9 + 10, 1e-9);
  EXPECT_NEAR(*left.seconds(100, 0, 0), 10, 1e-9);
  left.evaluated(20);  // each weighs half of the one after
  EXPECT_NEAR(*left.seconds(100, 0, 0), 15, 1e-9);
}

TEST(TimeLeft, AnEvaluationNotYetMeasuredIsAThirdOfItsTraining) {
  deck::Deck deck = deck_of(100, 0, 0);
  deck.evaluation.rows = 30;
  const TimeLeft left = after(deck, 10, 1);
  EXPECT_NEAR(*left.seconds(100, 0, 0), 30 / rows / 3, 1e-9);
}

TEST(TimeLeft, WhicheverLimitEndsTheRunFirst) {
  deck::Deck deck = deck_of(1000, 0, 0);
  deck.campaign.max_hours = 0.5;
  EXPECT_NEAR(*TimeLeft(deck).seconds(1, 999 * rows, 300), 1500, 1e-9);  // no rate yet
  TimeLeft left = after(deck, 10, 1);
  left.evaluated(7);
  EXPECT_NEAR(*left.seconds(10, 990 * rows, 300), 990 + 7, 1e-9);
  EXPECT_NEAR(*left.seconds(10, 990 * rows, 1200), 600 + 7, 1e-9);
  EXPECT_NEAR(*left.seconds(10, 990 * rows, 2000), 7, 1e-9);  // over

  deck.campaign.max_steps = 0;
  TimeLeft timed = after(deck, 10, 1);
  timed.evaluated(7);
  EXPECT_NEAR(*timed.seconds(10, 0, 300), 1500 + 7, 1e-9);
}

TEST(TimeLeft, IntervalsBeyondTheRunAndLargeOnes) {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  TimeLeft left = after(deck_of(100, huge, huge - 1), 10, 1);
  left.evaluated(4), left.saved(2);
  EXPECT_NEAR(*left.seconds(10, 90 * rows, 0), 90 + 4, 1e-9);
}

}  // namespace
}  // namespace tern
