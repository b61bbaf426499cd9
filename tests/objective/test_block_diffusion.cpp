// The objective of block diffusion as a whole: derivatives, packing, and what its numbers mean.
#include "model/slopes.hpp"
#include "objective/block_diffusion.hpp"
#include "objective/harness.hpp"

namespace tern {
namespace {

using objective::detail::BlockRows;
using test::flat;
using test::Made;

constexpr std::int32_t vocabulary = 23;

/// Three samples in two rows: of two levels, or of one.
std::vector<Made> packed_samples(bool hierarchical) {
  if (hierarchical) return {{0, 3, {4, 5}, {4, 2}}, {0, 2, {3, 4}, {3, 2}}, {1, 4, {5, 6}, {5, 3}}};
  return {flat(0, 3, 9, 4), flat(0, 0, 7, 2), flat(1, 4, 11, 11)};
}

constexpr std::size_t packed_positions = 40;

data::Batch packed_batch(bool hierarchical) {
  const std::vector<Made> samples = packed_samples(hierarchical);
  return test::batch_of(samples, 2, packed_positions,
                        test::random_tokens_of(samples, vocabulary, 4), 70);
}

class BlockDiffusion : public testing::TestWithParam<const char*> {
 protected:
  bool hierarchical() const { return std::string(GetParam()) == "hdp"; }
};

/// Along random directions of each parameter.
TEST_P(BlockDiffusion, GradientIsTheDerivativeOfTheLoss) {
  test::Pass<double> pass(test::tiny_deck(GetParam()), 2, packed_positions);
  pass.randomize(3);
  const data::Batch batch = packed_batch(hierarchical());
  const double loss = pass.step(batch);
  EXPECT_NEAR(pass.loss(batch), loss, 1e-13);
  const double worst = test::expect_slopes(
      pass.tree, pass.parameters->master, [&](const auto& name) { return pass.gradient(name); },
      [&] { return pass.loss(batch); }, {.step = 1e-4, .relative = 1e-7, .least_gradient = 1e-4});
  std::printf("%s: %zu parameters, worst relative error %.1e\n", GetParam(),
              pass.tree.parameters().size(), worst);
}

/// The levels' losses make up the total.
TEST_P(BlockDiffusion, PartsMakeTheTotal) {
  test::Pass<double> pass(test::tiny_deck(GetParam()), 2, packed_positions);
  pass.randomize(3);
  const double loss = pass.loss(packed_batch(hierarchical()));
  ASSERT_EQ(pass.parts.size(), hierarchical() ? 2u : 0u);
  if (hierarchical()) {
    EXPECT_NEAR(0.7 * pass.parts[0] + 1.3 * pass.parts[1], loss, 1e-13);
    EXPECT_GT(std::min(pass.parts[0], pass.parts[1]), 0.1);
  }
}

// ---- packed and unpacked rows

/// Which tokens of a sample's body are masked in its noisy copy, `begin` positions into the row.
std::vector<bool> masks_of(const BlockRows& rows, const Made& made, std::size_t begin) {
  const std::size_t body = made.length[0] + made.length[1];
  std::vector<bool> masks;
  for (std::size_t i = 0; i < body; ++i)
    masks.push_back(rows.tokens()[begin + made.prefix + body + i] == vocabulary - 1);
  return masks;
}

/// A global row number whose noise masks the sample, alone in its row, in just this way.
std::uint64_t row_with_masks(Made made, const std::vector<bool>& wanted,
                             const objective::detail::Noise& noise) {
  made.row = 0;
  const std::size_t positions = test::positions_of(made);
  BlockRows rows(1, positions, vocabulary - 1);
  data::Batch batch =
      test::batch_of({made}, 1, positions, std::vector<std::int32_t>(test::tokens_of({made}), 1));
  for (batch.samples[0] = 1000; batch.samples[0] < 200000; ++batch.samples[0]) {
    rows.fill(batch, noise);
    if (masks_of(rows, made, 0) == wanted) return batch.samples[0];
  }
  throw InternalError("no row number draws these masks");
}

/// The packed batch and the same samples each in a row of its own, under equal noise: all blocks at
/// time `time`, and unpacked rows so numbered that they draw the masks of the packed ones.
std::pair<data::Batch, data::Batch> packed_and_unpacked(const deck::Deck& deck, double time) {
  objective::detail::Noise noise{static_cast<std::uint64_t>(deck.campaign.seed), false, {}};
  noise.clip.fill({time, time});
  const bool hierarchical = deck.objective.hierarchy == "hdp";
  std::vector<Made> samples = packed_samples(hierarchical);
  const data::Batch packed = packed_batch(hierarchical);
  BlockRows rows(2, packed_positions, vocabulary - 1);
  rows.fill(packed, noise);
  std::vector<std::uint64_t> numbers;
  std::vector<std::size_t> used(2, 0);
  for (std::uint32_t s = 0; s < samples.size(); ++s) {
    const std::uint32_t row = samples[s].row;
    const auto masks = masks_of(rows, samples[s], row * packed_positions + used[row]);
    used[row] += test::positions_of(samples[s]);
    numbers.push_back(row_with_masks(samples[s], masks, noise));
    samples[s].row = s;
  }
  data::Batch unpacked = test::batch_of(samples, samples.size(), packed_positions,
                                        packed.as<data::SampleRows>().tokens);
  unpacked.samples = numbers;
  return {packed, unpacked};
}

TEST_P(BlockDiffusion, PackedIsUnpacked) {
  for (const double time : {0.5, 0.3, 1.0}) {
    deck::Deck deck = test::tiny_deck(GetParam());
    deck.objective.clip_low = deck.objective.clip_high = time;
    const auto [packed, unpacked] = packed_and_unpacked(deck, time);
    test::Pass<double> two(deck, 2, packed_positions), three(deck, 3, packed_positions);
    two.randomize(3);
    three.randomize(3);
    const double loss = two.step(packed), same = three.step(unpacked);
    EXPECT_GT(loss, 0.1);
    double worst = 0;
    for (const model::Parameter& p : two.tree.parameters()) {
      const double error = test::relative_error(two.gradient(p.name), three.gradient(p.name));
      worst = std::max(worst, error);
      EXPECT_LT(error, 1e-12) << p.name;
    }
    std::printf("%s at t = %.1f: packed - unpacked %.1e of loss %.6f, gradients %.1e\n", GetParam(),
                time, loss - same, loss, worst);
    EXPECT_NEAR(loss, same, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, BlockDiffusion, testing::Values("flat", "hdp"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace tern
