// The window of causal attention, and its growth over the steps.
#include "objective/harness.hpp"
#include "objective/refinement.hpp"
#include "objective/window.hpp"

namespace tern {
namespace {

deck::Model growing(std::int64_t start, std::int64_t last, std::int64_t steps) {
  deck::Model m;
  m.context = 1024, m.window_start = start, m.window = last, m.window_steps = steps;
  return m;
}

TEST(Window, GrowsByMultiplesOf64UpToTheLast) {
  const deck::Model m = growing(64, 500, 100);
  std::int64_t before = 64;
  EXPECT_EQ(objective::window_at(m, 0), 64);
  for (std::uint64_t step = 0; step < 100; ++step) {
    const std::int64_t now = objective::window_at(m, step);
    EXPECT_EQ(now % 64, 0);
    EXPECT_EQ(now, 64 + 64 * static_cast<std::int64_t>((500 - 64) * step / (64 * 100)));
    EXPECT_LT(now, 500);
    EXPECT_GE(now, before);
    EXPECT_GT(now, static_cast<std::int64_t>(step) * 436 / 100);
    before = now;
  }
  EXPECT_EQ(objective::window_at(m, 100), 500);
  EXPECT_EQ(objective::window_at(growing(128, 0, 10), 5), 576);  // to the context
  EXPECT_EQ(objective::window_at(growing(128, 0, 10), 10), 0);
  EXPECT_EQ(objective::window_at(growing(16, 0, 10), 0), 16);
  EXPECT_EQ(objective::window_at(growing(0, 96, 0), 0), 96);
  EXPECT_EQ(objective::window_at(growing(0, 0, 0), 7), 0);
}

/// Losses of a row with a window are those of its last tokens only.
TEST(Window, HidesWhatIsBeforeIt) {
  deck::Deck deck = test::tiny_deck();
  deck.model.context = 12, deck.model.layers = 1, deck.model.window = 4;
  const auto last_loss = [&](const deck::Deck& of, std::vector<std::int32_t> tokens) {
    const std::size_t T = tokens.size();
    std::vector<std::int32_t> targets(T, -1);
    targets.back() = 3;
    test::Pass<double> pass(of, 1, T);
    pass.randomize(5);
    return pass.loss(test::causal_batch(1, T, tokens, targets));
  };
  std::vector<std::int32_t> tokens = test::random_tokens(12, 23, 1), changed = tokens;
  changed[7] = (tokens[7] + 1) % 23;
  EXPECT_EQ(last_loss(deck, tokens), last_loss(deck, changed));
  changed[8] = (tokens[8] + 1) % 23;
  EXPECT_NE(last_loss(deck, tokens), last_loss(deck, changed));
  deck.model.window = 0;
  const double all = last_loss(deck, tokens);
  deck.model.window = 12;
  EXPECT_EQ(last_loss(deck, tokens), all);
}

/// A step takes the window of its number; an evaluation the last one.
TEST(Window, FollowsTheStepOfTheBatch) {
  deck::Deck deck = test::tiny_deck();
  deck.model.context = 200, deck.model.window_start = 64, deck.model.window_steps = 2;
  test::Pass<double> pass(deck, 1, 200);
  deck::Deck fixed = deck;
  fixed.model.window_start = fixed.model.window_steps = 0, fixed.model.window = 64;
  test::Pass<double> narrow(fixed, 1, 200);
  fixed.model.window = 0;
  test::Pass<double> wide(fixed, 1, 200);
  for (test::Pass<double>* p : {&pass, &narrow, &wide}) p->randomize(3);
  data::Batch batch =
      test::causal_batch(1, 200, test::random_tokens(200, 23, 1), test::random_tokens(200, 23, 2));
  batch.step_number = 0;
  EXPECT_EQ(pass.loss(batch), narrow.loss(batch));
  EXPECT_NE(narrow.loss(batch), wide.loss(batch));
  EXPECT_EQ(pass.evaluate({batch}).loss, wide.evaluate({batch}).loss);
  batch.step_number = 2;
  EXPECT_EQ(pass.loss(batch), wide.loss(batch));
}

}  // namespace
}  // namespace tern
