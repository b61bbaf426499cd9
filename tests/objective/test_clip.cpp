// The clip interval: its search, what is kept of it, and the figures of an evaluation.
#include <fmt/format.h>

#include <map>

#include "objective/block_diffusion.hpp"
#include "objective/harness.hpp"

namespace tern {
namespace {

using objective::detail::BlockRows;
using objective::detail::Clip;
using objective::detail::Noise;
using objective::detail::NoisyBlock;
using test::Made;

constexpr std::int32_t vocabulary = 23;
constexpr std::uint32_t rows = 48;
constexpr std::size_t positions = 2 + 2 * (7 + 13);

data::Batch batch_at(std::uint64_t step) {
  std::vector<Made> samples;
  for (std::uint32_t r = 0; r < rows; ++r) samples.push_back({r, 2, {7, 13}, {4, 5}});
  data::Batch batch = test::batch_of(
      samples, rows, positions,
      test::random_tokens_of(samples, vocabulary, static_cast<unsigned>(step)), rows * step);
  batch.step_number = step;
  return batch;
}

deck::Deck deck_with(const Clip& clip) {
  deck::Deck deck = test::tiny_deck("hdp");
  deck.objective.clip_low = clip.low, deck.objective.clip_high = clip.high;
  return deck;
}

std::vector<std::int32_t> integers(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

/// An evaluation with made-up losses, and the truth about it block by block.
struct Evaluation {
  struct Block {
    double t, loss;  // mean of its tokens
  };
  std::array<std::vector<Block>, data::levels> blocks;
  std::array<double, data::levels> loss{}, tokens{};
  std::map<std::pair<std::size_t, int>, std::pair<double, double>> bins;  // masked, correct
  std::vector<double> sums;
};

void add(test::Pass<double>& pass, std::uint64_t step, unsigned seed, Evaluation& e) {
  const data::Batch batch = batch_at(step);
  BlockRows drawn(rows, positions, vocabulary - 1);
  drawn.fill(batch, Noise{21, true, {}});  // times in [1e-3, 1]
  const auto prepared = pass.objective->prepare(pass.context, batch, 0, true);
  pass.context.fence("prepared");
  ASSERT_EQ(integers(test::download(prepared.scored.rows)), drawn.masked());
  for (const double weight : test::download(prepared.weights)) ASSERT_EQ(weight, 1);

  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform;
  const double slope = uniform(generator), noise = uniform(generator), bend = uniform(generator);
  std::vector<double> losses, of_block(drawn.blocks().size(), 0);
  std::vector<std::int32_t> best;
  for (std::size_t m = 0; m < drawn.masked().size(); ++m) {
    const NoisyBlock& block = drawn.blocks()[drawn.block_of()[m]];
    const double at = block.t - bend;
    losses.push_back(1 + slope * at * at * 8 + noise * uniform(generator));
    of_block[drawn.block_of()[m]] += losses.back() / block.t;
    const bool correct = uniform(generator) > block.t;
    best.push_back(correct ? drawn.targets()[m] : vocabulary - 1);
    auto& bin = e.bins[{block.level, std::min(19, static_cast<int>(block.t * 20))}];
    bin.first += 1, bin.second += correct;
  }
  for (std::size_t b = 0; b < of_block.size(); ++b) {
    const NoisyBlock& block = drawn.blocks()[b];
    e.blocks[block.level].push_back({block.t, of_block[b] / block.tokens});
    e.loss[block.level] += of_block[b];
    e.tokens[block.level] += block.tokens;
  }
  pass.objective->accumulate(0, losses, best, e.sums);
}

Evaluation evaluation(test::Pass<double>& pass, unsigned seed) {
  Evaluation e;
  e.sums.assign(pass.objective->sums(), 0);
  for (std::uint64_t step = 0; step < 3; ++step) add(pass, step, seed, e);
  return e;
}

/// Directly: of the blocks with times in [low, high).
double variance(const std::vector<Evaluation::Block>& blocks, const Clip& clip) {
  std::vector<double> inside;
  for (const auto& block : blocks)
    if (block.t >= clip.low && (block.t < clip.high || clip.high == 1))
      inside.push_back(block.loss);
  double mean = 0, sum = 0;
  for (const double loss : inside) mean += loss / static_cast<double>(inside.size());
  for (const double loss : inside) sum += (loss - mean) * (loss - mean);
  return sum / static_cast<double>(inside.size());
}

std::pair<Clip, double> least_variance(const std::vector<Evaluation::Block>& blocks) {
  Clip best;
  double least = 1e300;
  for (int width = 10; width <= 18; ++width)
    for (int first = 0; first + width <= 20; ++first) {
      const Clip clip{std::max(1e-3, first / 20.0), (first + width) / 20.0};
      const double v = variance(blocks, clip);
      if (v < least) least = v, best = clip;
    }
  return {best, least};
}

TEST(ClipSearch, FindsTheWindowOfLeastVariance) {
  test::Pass<double> pass(deck_with({0.3, 0.8}), rows, positions);
  std::set<std::pair<double, double>> found;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    const Evaluation e = evaluation(pass, seed);
    pass.objective->finalize(e.sums, true);
    const auto state = pass.objective->state();
    for (std::size_t l = 0; l < data::levels; ++l) {
      const std::string name = l == data::plan_level ? "plan" : "execution";
      const Clip chosen{state.at("clip_low_" + name), state.at("clip_high_" + name)};
      const auto [best, least] = least_variance(e.blocks[l]);
      EXPECT_NEAR(variance(e.blocks[l], chosen), least, 1e-12 * least) << seed << name;
      EXPECT_DOUBLE_EQ(chosen.low, best.low);
      EXPECT_DOUBLE_EQ(chosen.high, best.high);
      found.insert({chosen.low, chosen.high});
    }
  }
  std::printf("60 searches, %zu different windows\n", found.size());
  EXPECT_GT(found.size(), 5u);
}

/// Losses of 1 at times in [0.4, 0.5) and [0.9, 1), else 0: every window of width 0.5 has one fifth
/// of ones, a wider one fewer, and [0, 0.9) the fewest.
TEST(ClipSearch, ReachesTheWidestWindow) {
  test::Pass<double> pass(deck_with({0.3, 0.8}), rows, positions);
  std::vector<double> sums(pass.objective->sums(), 0);
  BlockRows drawn(rows, positions, vocabulary - 1);
  for (std::uint64_t step = 0; step < 5; ++step) {
    drawn.fill(batch_at(step), Noise{21, true, {}});
    pass.objective->prepare(pass.context, batch_at(step), 0, true);
    pass.context.fence("prepared");
    std::vector<double> masked(drawn.blocks().size(), 0), losses;
    for (const std::uint32_t b : drawn.block_of()) masked[b] += 1;
    for (const std::uint32_t b : drawn.block_of()) {
      const NoisyBlock& block = drawn.blocks()[b];
      const bool one = (block.t >= 0.4 && block.t < 0.5) || block.t >= 0.9;
      losses.push_back(one ? block.t * block.tokens / masked[b] : 0);
    }
    pass.objective->accumulate(0, losses, drawn.targets(), sums);
  }
  pass.objective->finalize(sums, true);
  EXPECT_EQ(pass.objective->state(), (std::map<std::string, double>{{"clip_low_plan", 1e-3},
                                                                    {"clip_high_plan", 0.9},
                                                                    {"clip_low_execution", 1e-3},
                                                                    {"clip_high_execution", 0.9}}));
}

TEST(ClipSearch, OnlyWhereItIsWanted) {
  deck::Deck deck = deck_with({0.3, 0.8});
  test::Pass<double> pass(deck, rows, positions);
  const auto before = pass.objective->state();
  EXPECT_EQ(before, (std::map<std::string, double>{{"clip_low_plan", 0.3},
                                                   {"clip_high_plan", 0.8},
                                                   {"clip_low_execution", 0.3},
                                                   {"clip_high_execution", 0.8}}));
  pass.objective->finalize(evaluation(pass, 1).sums, false);
  EXPECT_EQ(pass.objective->state(), before);
  deck.objective.clip_search = false;
  test::Pass<double> fixed(deck, rows, positions);
  fixed.objective->finalize(evaluation(fixed, 1).sums, true);
  EXPECT_EQ(fixed.objective->state(), before);
}

/// Without blocks there is nothing to choose by.
TEST(ClipSearch, KeepsTheClipOfALevelThatHasNoBlocks) {
  deck::Deck deck = test::tiny_deck("flat");
  deck.objective.clip_low = 0.3;
  test::Pass<double> pass(deck, 1, 20);
  const std::vector<Made> samples = {test::flat(0, 2, 9, 3)};
  const data::Batch batch =
      test::batch_of(samples, 1, 20, test::random_tokens_of(samples, vocabulary, 1));
  pass.objective->prepare(pass.context, batch, 0, true);
  BlockRows drawn(1, 20, vocabulary - 1);
  drawn.fill(batch, Noise{21, true, {}});
  std::vector<double> sums(pass.objective->sums(), 0);
  pass.objective->accumulate(0, std::vector<double>(drawn.masked().size(), 1),
                             std::vector<std::int32_t>(drawn.masked().size(), 0), sums);
  pass.objective->finalize(sums, true);
  EXPECT_EQ(pass.objective->state().at("clip_low_plan"), 0.3);
}

TEST(ClipState, ComesBackAndTrainingUsesIt) {
  test::Pass<double> pass(deck_with({1e-3, 1}), rows, positions),
      resumed(deck_with({1e-3, 1}), rows, positions);
  pass.objective->finalize(evaluation(pass, 4).sums, true);
  const auto state = pass.objective->state();
  EXPECT_NE(state, resumed.objective->state());
  resumed.objective->restore(state);
  EXPECT_EQ(state, resumed.objective->state());
  Noise noise{21, false, {}};
  noise.clip[test::plan_level] = {state.at("clip_low_plan"), state.at("clip_high_plan")};
  noise.clip[test::execution_level] = {state.at("clip_low_execution"),
                                       state.at("clip_high_execution")};
  BlockRows drawn(rows, positions, vocabulary - 1);
  drawn.fill(batch_at(5), noise);
  const auto prepared = resumed.objective->prepare(resumed.context, batch_at(5), 0, false);
  resumed.context.fence("prepared");
  EXPECT_EQ(integers(test::download(prepared.scored.rows)), drawn.masked());
}

TEST(Score, IsWhatTheBlocksSay) {
  test::Pass<double> pass(deck_with({0.3, 0.8}), rows, positions);
  const Evaluation e = evaluation(pass, 2);
  const objective::Score score = pass.objective->finalize(e.sums, false);
  EXPECT_EQ(score.tokens, 3 * rows * 20);
  EXPECT_NEAR(score.loss, (e.loss[0] + e.loss[1]) / (e.tokens[0] + e.tokens[1]), 1e-12);
  EXPECT_NEAR(score.metrics.at("val/loss_plan"), e.loss[0] / e.tokens[0], 1e-12);
  EXPECT_NEAR(score.metrics.at("val/loss_execution"), e.loss[1] / e.tokens[1], 1e-12);
  double masked = 0, correct = 0;
  std::size_t named = 0;
  for (const auto& [bin, count] : e.bins) {
    const std::string name = fmt::format(
        "val/accuracy_t_{}/{:.3f}", bin.first == 0 ? "plan" : "execution", (bin.second + 0.5) / 20);
    ASSERT_TRUE(score.metrics.count(name)) << name;
    EXPECT_NEAR(score.metrics.at(name), count.second / count.first, 1e-15);
    masked += count.first, correct += count.second, ++named;
  }
  EXPECT_GT(named, 30u);
  EXPECT_NEAR(score.metrics.at("val/accuracy"), correct / masked, 1e-15);
}

}  // namespace
}  // namespace tern
