// What a resumed run says: a rate that jumps, and nothing left to do.
#include <gtest/gtest.h>

#include "campaign/training/resumption.hpp"

namespace tern {
namespace {

using campaign::nothing_left;
using campaign::rate_jump;
using campaign::TrainState;

deck::Deck deck_of(const std::string& schedule, std::int64_t steps) {
  deck::Deck deck;
  deck.campaign.max_steps = steps;
  deck.optimizer.schedule = schedule;
  deck.optimizer.lr = 1e-3;
  return deck;
}

TrainState at(std::int64_t step) {
  TrainState state;
  state.step = step;
  return state;
}

TEST(RateJump, OfACosineThatHadEnded) {
  EXPECT_EQ(
      rate_jump(deck_of("cosine", 60), deck_of("cosine", 120), at(60)),
      "the learning rate jumps up from 0.00e+00 at step 60 to 4.87e-04 at step 61: schedule = "
      "'cosine' runs over max_steps = 120 now, not max_steps = 60");
  EXPECT_EQ(rate_jump(deck_of("linear", 120), deck_of("linear", 80), at(60)),
            "the learning rate falls from 5.00e-04 at step 60 to 2.38e-04 at step 61: schedule = "
            "'linear' runs over max_steps = 80 now, not max_steps = 120");
}

TEST(RateJump, OfAnotherRateOrSchedule) {
  deck::Deck higher = deck_of("constant", 60);
  higher.optimizer.lr = 2e-3;
  EXPECT_EQ(rate_jump(deck_of("constant", 60), higher, at(30)),
            "the learning rate jumps up from 1.00e-03 at step 30 to 2.00e-03 at step 31");
  EXPECT_NE(rate_jump(deck_of("cosine", 60), deck_of("constant", 60), at(30)), "");
  deck::Deck hours = deck_of("linear", 0);
  hours.campaign.max_hours = 1;
  TrainState state = at(50);
  state.seconds = 900;
  EXPECT_EQ(
      rate_jump(deck_of("linear", 100), hours, state),
      "the learning rate jumps up from 5.00e-04 at step 50 to 7.50e-04 at step 51: schedule = "
      "'linear' runs over max_hours = 1 now, not max_steps = 100");
}

TEST(RateJump, IsNotSaidOfTheSameCourse) {
  EXPECT_EQ(rate_jump(deck_of("cosine", 60), deck_of("cosine", 60), at(30)), "");
  EXPECT_EQ(rate_jump(deck_of("constant", 60), deck_of("constant", 120), at(60)), "");
  EXPECT_EQ(rate_jump(deck_of("cosine", 10000), deck_of("cosine", 10001), at(5000)), "");
  EXPECT_EQ(rate_jump(deck_of("cosine", 60), deck_of("cosine", 120), at(0)), "");
  deck::Deck plateau = deck_of("wsd", 1000), longer = deck_of("wsd", 2000);
  EXPECT_EQ(rate_jump(plateau, longer, at(700)), "");
  EXPECT_NE(rate_jump(plateau, longer, at(900)), "");
}

TEST(NothingLeft, OfSteps) {
  EXPECT_EQ(nothing_left(deck_of("cosine", 30), at(60)),
            "nothing was done: the run is at step 60 already, and campaign.max_steps = 30; set "
            "campaign.max_steps above 60 to train on");
  EXPECT_NE(nothing_left(deck_of("cosine", 60), at(60)), "");
  EXPECT_EQ(nothing_left(deck_of("cosine", 61), at(60)), "");
  deck::Deck epochs = deck_of("cosine", 60);
  epochs.campaign.epochs = 2;
  EXPECT_NE(nothing_left(epochs, at(60)).find("raise campaign.epochs"), std::string::npos);
}

TEST(NothingLeft, OfHoursTargetAndPatience) {
  deck::Deck deck = deck_of("cosine", 100);
  TrainState state = at(60);
  state.seconds = 7200, state.validation_loss = 2, state.evaluations_without_gain = 3;
  deck.campaign.max_hours = 1.5;
  EXPECT_EQ(nothing_left(deck, state),
            "nothing was done: the run is at step 60 already, and it has taken 2.00 of "
            "campaign.max_hours = 1.5; raise that to train on");
  deck.evaluation.patience = 3;
  EXPECT_NE(nothing_left(deck, state).find("3 evaluations without improvement"), std::string::npos);
  deck.evaluation.target_loss = 2.5;
  EXPECT_NE(nothing_left(deck, state).find("target_loss = 2.5; lower that"), std::string::npos);
  deck = deck_of("cosine", 0);
  deck.campaign.max_hours = 3;
  EXPECT_EQ(nothing_left(deck, state), "");
}

}  // namespace
}  // namespace tern
