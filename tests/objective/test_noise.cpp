// The noise of block diffusion: times spread over a step, masks, and the same ones on any layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data/reader.hpp"
#include "data/sample_source.hpp"
#include "objective/batches.hpp"
#include "objective/detail/block_rows.hpp"

namespace tern::objective::detail {
namespace {

using test::Made;

constexpr std::int32_t vocabulary = 50;

/// The parts, of as many as there are times, in which times stand.
std::set<int> parts_of(const std::vector<double>& times, const Clip& clip) {
  std::set<int> parts;
  for (const double t : times)
    parts.insert(static_cast<int>((t - clip.low) / (clip.high - clip.low) *
                                  static_cast<double>(times.size())));
  EXPECT_GE(*parts.begin(), 0);
  EXPECT_LT(*parts.rbegin(), static_cast<int>(times.size()));
  return parts;
}

/// A batch of 8 rows, each one block of 4 and one of 3 tokens, as step `step`.
data::Batch step_batch(std::uint64_t step) {
  std::vector<Made> samples;
  for (std::uint32_t r = 0; r < 8; ++r) samples.push_back(test::flat(r, 1, 7, 4));
  data::Batch batch =
      test::batch_of(samples, 8, 15, test::random_tokens_of(samples, vocabulary, 2), 8 * step);
  batch.step_number = step;
  return batch;
}

TEST(Noise, TimesOfAStepStandOneInEachPartAndAreUniform) {
  BlockRows rows(8, 15, vocabulary - 1);
  Noise noise{5, false, {}};
  noise.clip[test::execution_level] = {0.2, 0.9};
  std::vector<double> within, of_first;
  std::size_t masked = 0;
  double expected = 0, variance = 0;
  constexpr std::uint64_t steps = 500;
  for (std::uint64_t step = 0; step < steps; ++step) {
    rows.fill(step_batch(step), noise);
    ASSERT_EQ(rows.blocks().size(), 16u);
    std::vector<double> times;
    for (const NoisyBlock& block : rows.blocks()) {
      const double u = (block.t - 0.2) / 0.7 * 16;
      times.push_back(block.t);
      within.push_back(u - std::floor(u));
      EXPECT_DOUBLE_EQ(block.weight, 1 / block.t);
      expected += block.t * block.tokens;
      variance += block.t * (1 - block.t) * block.tokens;
    }
    ASSERT_EQ(parts_of(times, {0.2, 0.9}).size(), 16u);
    of_first.push_back((rows.blocks().front().t - 0.2) / 0.7);
    masked += rows.masked().size();
  }
  // Kolmogorov-Smirnov: beyond 1.95 / sqrt(n) once in a thousand times.
  for (std::vector<double>* sample : {&within, &of_first}) {
    std::sort(sample->begin(), sample->end());
    const auto n = static_cast<double>(sample->size());
    double distance = 0;
    for (std::size_t i = 0; i < sample->size(); ++i)
      distance = std::max({distance, (static_cast<double>(i) + 1) / n - (*sample)[i],
                           (*sample)[i] - static_cast<double>(i) / n});
    std::printf("%zu times: distance from uniform %.4f\n", sample->size(), distance);
    EXPECT_LT(distance, 1.95 / std::sqrt(n));
  }
  EXPECT_NEAR(static_cast<double>(masked), expected, 4 * std::sqrt(variance));
}

TEST(Noise, WeighsOneWhereTheClipBeginsBeyondOneHalf) {
  BlockRows rows(8, 15, vocabulary - 1);
  Noise noise{5, false, {}};
  noise.clip.fill({0.55, 1});
  rows.fill(step_batch(3), noise);
  for (const NoisyBlock& block : rows.blocks()) EXPECT_EQ(block.weight, 1);
}

/// A block of one token is wholly masked: its likelihood needs no sampling.
TEST(Noise, MasksBlocksOfOneTokenAlways) {
  const std::vector<Made> samples = {test::flat(0, 2, 9, 1)};
  BlockRows rows(1, 20, vocabulary - 1);
  rows.fill(test::batch_of(samples, 1, 20, test::random_tokens_of(samples, vocabulary, 2)), {});
  EXPECT_EQ(rows.masked().size(), 9u);
  for (const NoisyBlock& block : rows.blocks()) EXPECT_EQ(block.weight, 1);
}

TEST(Noise, DiffersBetweenEpochsSeedsAndEvaluation) {
  const auto masked = [](std::uint64_t step, std::uint64_t seed, bool evaluating) {
    BlockRows rows(8, 15, vocabulary - 1);
    Noise noise{seed, evaluating, {}};
    noise.clip.fill({0.5, 0.5});  // the masks alone
    rows.fill(step_batch(step), noise);
    return rows.masked();
  };
  const auto times = [](bool evaluating) {
    BlockRows rows(8, 15, vocabulary - 1);
    rows.fill(step_batch(0), {1, evaluating, {}});
    std::set<double> drawn;
    for (const NoisyBlock& block : rows.blocks()) drawn.insert(block.t);
    return drawn;
  };
  EXPECT_NE(times(false), times(true));
  std::set<std::vector<std::int32_t>> all{masked(0, 1, false), masked(1, 1, false),
                                          masked(0, 2, false), masked(0, 1, true)};
  EXPECT_EQ(all.size(), 4u);
  EXPECT_EQ(masked(4, 1, false), masked(4, 1, false));
}

// ---- the same noise for any layout

/// What was drawn for a global row: its masked tokens in place, and its blocks' times.
struct Drawn {
  std::vector<std::int32_t> tokens;
  std::array<std::vector<double>, data::levels> times;
  bool operator==(const Drawn&) const = default;
};

using DrawnRows = std::map<std::uint64_t, Drawn>;

void draw(const data::Batch& batch, BlockRows& rows, DrawnRows& drawn) {
  const std::size_t T = batch.tokens_per_sequence;
  rows.fill(batch, {11, false, {}});
  for (std::size_t b = 0; b < batch.samples.size(); ++b) {
    Drawn& row = drawn[batch.samples[b]];
    EXPECT_TRUE(row.tokens.empty()) << "row " << batch.samples[b] << " twice";
    const auto first = rows.tokens().begin() + static_cast<std::ptrdiff_t>(b * T);
    row.tokens.assign(first, first + static_cast<std::ptrdiff_t>(T));
  }
  std::size_t block = 0;
  for (const data::SamplePiece& piece : batch.as<data::SampleRows>().pieces)
    for (std::size_t l = 0; l < data::levels; ++l)
      for (std::uint32_t i = 0; i < piece.length[l]; i += piece.block[l])
        drawn[batch.samples[piece.row]].times[l].push_back(rows.blocks()[block++].t);
  EXPECT_EQ(block, rows.blocks().size());
}

/// What all ranks together draw in steps [first_step, steps).
DrawnRows drawn_by(const data::SampleSource& source, const data::ReaderOptions& options,
                   std::size_t ranks, std::size_t steps, std::size_t first_step = 0) {
  DrawnRows drawn;
  BlockRows rows(options.sequences, options.length, 256);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    data::Reader reader(source, options, rank, ranks, first_step * options.accumulation);
    for (std::size_t m = first_step * options.accumulation; m < steps * options.accumulation; ++m)
      draw(reader.next(), rows, drawn);
  }
  return drawn;
}

/// Steps of 8 rows.
data::ReaderOptions training(const data::SampleSource& source, std::size_t ranks,
                             std::size_t accumulation) {
  data::ReaderOptions options{8 / ranks / accumulation, source.positions()};
  options.seed = 3;
  options.accumulation = accumulation;
  return options;
}

/// Short problems, several in a row.
data::SampleSource small_source() {
  std::vector<data::Sample> samples(40);
  std::mt19937 generator(8);
  for (data::Sample& sample : samples)
    sample = {std::string(3 + generator() % 6, 'q'), std::string(2 + generator() % 8, 'p'),
              std::string(4 + generator() % 12, 'x'), ""};
  data::SampleRules rules;
  rules.question_tokens = 10, rules.plan_tokens = 12, rules.execution_tokens = 18;
  rules.execution_block = 4, rules.positions = 140;
  return data::SampleSource(samples, *text::open_tokenizer("bytes"), rules);
}

TEST(Noise, IsTheSameOnAnyLayoutAndAfterResuming) {
  const data::SampleSource source = small_source();
  const DrawnRows alone = drawn_by(source, training(source, 1, 1), 1, 6);
  ASSERT_EQ(alone.size(), 48u);
  const std::pair<std::size_t, std::size_t> layouts[] = {{1, 4}, {2, 1}, {2, 2}, {4, 1},
                                                         {4, 2}, {1, 8}, {8, 1}};
  for (const auto& [ranks, accumulation] : layouts)
    EXPECT_EQ(drawn_by(source, training(source, ranks, accumulation), ranks, 6), alone)
        << ranks << " ranks, " << accumulation << " micro-batches";
  const DrawnRows resumed = drawn_by(source, training(source, 2, 1), 2, 6, 4);
  EXPECT_EQ(resumed.size(), 16u);
  for (const auto& [row, drawn] : resumed) EXPECT_EQ(drawn, alone.at(row));
  for (std::uint64_t step = 0; step < 6; ++step)
    for (std::size_t level = 0; level < data::levels; ++level) {
      std::vector<double> times;
      for (std::uint64_t row = 8 * step; row < 8 * step + 8; ++row) {
        const std::vector<double>& of_row = alone.at(row).times[level];
        times.insert(times.end(), of_row.begin(), of_row.end());
      }
      ASSERT_GT(times.size(), 8u);
      EXPECT_EQ(parts_of(times, {}).size(), times.size());
    }
}

/// An evaluation is one step of `limit` rows; where they do not fill the ranks' micro-batches, the
/// last rows are empty.
TEST(Noise, OfAnEvaluationIsTheSameOnAnyLayout) {
  const data::SampleSource source = small_source();
  constexpr std::size_t limit = 7, each = 2;
  ASSERT_GE(source.rows(), limit);
  const auto drawn_on = [&](std::size_t ranks) {
    data::ReaderOptions options{each, source.positions()};
    options.shuffle = false;
    options.limit = limit;
    options.accumulation = (limit + each * ranks - 1) / (each * ranks);
    return drawn_by(source, options, ranks, 1);
  };
  const DrawnRows alone = drawn_on(1);
  ASSERT_EQ(alone.size(), limit);
  for (const std::size_t ranks : {2, 3, 4}) EXPECT_EQ(drawn_on(ranks), alone) << ranks;
}

}  // namespace
}  // namespace tern::objective::detail
