// Rows of block diffusion: who sees whom, against dense masks written from the definition, and the
// noise that is drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "batches.hpp"
#include "data/reader.hpp"
#include "data/sample_source.hpp"
#include "objective/detail/block_rows.hpp"

namespace tern::objective::detail {
namespace {

using test::Made;

constexpr std::int32_t vocabulary = 50;

/// What a position is, said in words.
struct Place {
  enum class Kind { padding, prefix, clean, noisy } kind = Kind::padding;
  std::size_t sample = 0, block = 0, token = 0;  // blocks counted over both levels
};

std::size_t block_number(const Made& made, std::size_t token) {
  if (token < made.length[0]) return token / made.block[0];
  const std::size_t plan_blocks =
      made.length[0] == 0 ? 0 : (made.length[0] - 1) / made.block[0] + 1;
  return plan_blocks + (token - made.length[0]) / made.block[1];
}

std::vector<Place> places_of(const std::vector<Made>& samples, std::size_t rows,
                             std::size_t positions) {
  std::vector<Place> places(rows * positions);
  std::vector<std::size_t> used(rows, 0);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const Made& made = samples[s];
    const auto next = [&]() -> Place& { return places[made.row * positions + used[made.row]++]; };
    for (std::size_t i = 0; i < made.prefix; ++i) next() = {Place::Kind::prefix, s, 0, i};
    for (const auto kind : {Place::Kind::clean, Place::Kind::noisy})
      for (std::size_t i = 0; i < made.length[0] + made.length[1]; ++i)
        next() = {kind, s, block_number(made, i), made.prefix + i};
  }
  return places;
}

/// The definition.
bool sees(const Place& query, const Place& key) {
  using Kind = Place::Kind;
  if (query.kind == Kind::padding || key.kind == Kind::padding || query.sample != key.sample)
    return false;
  if (key.kind == Kind::prefix) return true;
  if (query.kind == Kind::prefix) return false;
  if (key.kind == Kind::noisy) return query.kind == Kind::noisy && query.block == key.block;
  return query.kind == Kind::noisy ? key.block < query.block : key.block <= query.block;
}

ops::Pattern pattern_of(const BlockRows& rows) {
  return rows.table().pattern(rows.table().spans().data(), rows.table().hulls().data());
}

struct Tally {
  std::size_t patterns = 0, pairs = 0, differences = 0;
  std::size_t tiles = 0, wrong = 0, undecided = 0, decidable = 0;
};

void check_tiles(const ops::Pattern& pattern, std::size_t row, int positions,
                 const std::vector<char>& dense, int height, int width, Tally& tally) {
  const auto size = static_cast<std::size_t>(positions);
  for (int q = 0; q < positions; q += height)
    for (int k = 0; k < positions; k += width) {
      const int q1 = std::min(q + height, positions), k1 = std::min(k + width, positions);
      int allowed = 0;
      for (int i = q; i < q1; ++i)
        for (int j = k; j < k1; ++j)
          allowed += dense[static_cast<std::size_t>(i) * size + static_cast<std::size_t>(j)];
      const ops::Tile truth = allowed == 0                     ? ops::Tile::none
                              : allowed == (q1 - q) * (k1 - k) ? ops::Tile::all
                                                               : ops::Tile::mixed;
      const ops::Tile said = pattern.tile(static_cast<int>(row), q, q1, k, k1);
      ++tally.tiles;
      tally.decidable += truth != ops::Tile::mixed;
      if (said == truth) continue;
      if (said == ops::Tile::mixed)
        ++tally.undecided;
      else
        ++tally.wrong;
    }
}

void check(const std::vector<Made>& samples, std::size_t rows, std::size_t positions,
           Tally& tally) {
  BlockRows block_rows(rows, positions, vocabulary - 1);
  block_rows.fill(
      test::batch_of(samples, rows, positions, test::random_tokens_of(samples, vocabulary, 1)), {});
  const ops::Pattern pattern = pattern_of(block_rows);
  const std::vector<Place> places = places_of(samples, rows, positions);
  ++tally.patterns;
  std::vector<char> dense(positions * positions);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t q = 0; q < positions; ++q)
      for (std::size_t k = 0; k < positions; ++k) {
        const bool truth = sees(places[r * positions + q], places[r * positions + k]);
        dense[q * positions + k] = truth;
        ++tally.pairs;
        tally.differences +=
            truth != pattern.allowed(static_cast<int>(r), static_cast<int>(q), static_cast<int>(k));
      }
    for (const int height : {1, 8, 16, 32, 64})
      for (const int width : {8, 16, 64})
        check_tiles(pattern, r, static_cast<int>(positions), dense, height, width, tally);
  }
}

/// One to four samples a row, of all shapes, and padding at the end of most rows.
std::vector<Made> random_samples(std::mt19937& generator, std::size_t rows, std::size_t positions) {
  const auto upto = [&](std::uint32_t n) { return static_cast<std::uint32_t>(generator() % n); };
  std::vector<Made> samples;
  for (std::uint32_t r = 0; r < rows; ++r) {
    std::size_t used = 0;
    for (std::uint32_t tries = 1 + upto(4); tries > 0; --tries) {
      Made made{r, upto(3) ? upto(20) : 0, {upto(2) ? upto(24) : 0, 1 + upto(40)}, {}};
      for (std::size_t l = 0; l < data::levels; ++l) {
        const std::uint32_t n = std::max(1u, made.length[l]);
        const std::uint32_t blocks[] = {1, n, 1 + upto(n), 4, 16};
        made.block[l] = blocks[upto(5)];
      }
      if (used + test::positions_of(made) > positions) continue;
      used += test::positions_of(made);
      samples.push_back(made);
    }
  }
  return samples;
}

TEST(BlockPattern, IsTheDenseMaskOfTheDefinition) {
  Tally tally;
  std::mt19937 generator(20);
  for (int n = 0; n < 300; ++n) {
    const std::size_t rows = 1 + generator() % 3, positions = 40 + generator() % 200;
    check(random_samples(generator, rows, positions), rows, positions, tally);
  }
  const std::vector<std::vector<Made>> shapes = {
      {},                                                // padding alone
      {test::flat(0, 0, 32, 1)},                         // L' = 1
      {test::flat(0, 0, 32, 32)},                        // L' = L
      {test::flat(0, 0, 33, 16)},                        // a short last block
      {test::flat(0, 5, 32, 8)},                         // question
      {{0, 7, {9, 20}, {9, 8}}},                         // plan at once, then execution
      {{0, 7, {9, 20}, {4, 20}}},                        // plan in blocks, execution at once
      {{0, 3, {5, 6}, {5, 2}}, {0, 4, {6, 5}, {2, 1}}},  // two in a row
      {{0, 6, {0, 0}, {0, 0}}, {0, 0, {0, 12}, {0, 3}}}  // a prefix alone
  };
  for (const auto& samples : shapes) check(samples, 1, 80, tally);
  std::printf(
      "%zu patterns, %zu pairs, %zu differences; %zu tiles, %zu wrongly none or all, %zu of the "
      "%zu that are none or all called mixed (%.2f%%)\n",
      tally.patterns, tally.pairs, tally.differences, tally.tiles, tally.wrong, tally.undecided,
      tally.decidable,
      100 * static_cast<double>(tally.undecided) / static_cast<double>(tally.decidable));
  EXPECT_EQ(tally.differences, 0u);
  EXPECT_EQ(tally.wrong, 0u);
  EXPECT_LT(tally.undecided, tally.decidable / 1000);
}

/// What the kernels use it for: whole rows at tiles of 64 by 64.
TEST(BlockPattern, DecidesNearlyAllTilesOfRealRows) {
  const std::vector<Made> samples = {{0, 128, {128, 256}, {128, 16}},
                                     test::flat(1, 0, 448, 16),
                                     {2, 55, {52, 80}, {52, 16}},
                                     {2, 61, {40, 96}, {40, 16}}};
  Tally tally;
  BlockRows rows(3, 896, vocabulary - 1);
  rows.fill(test::batch_of(samples, 3, 896, test::random_tokens_of(samples, vocabulary, 1)), {});
  const ops::Pattern pattern = pattern_of(rows);
  const std::vector<Place> places = places_of(samples, 3, 896);
  std::vector<char> dense(896 * 896);
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t q = 0; q < 896; ++q)
      for (std::size_t k = 0; k < 896; ++k)
        dense[q * 896 + k] = sees(places[r * 896 + q], places[r * 896 + k]);
    check_tiles(pattern, r, 896, dense, 64, 64, tally);
  }
  std::printf("%zu tiles of 64 x 64: %zu of the %zu that are none or all called mixed\n",
              tally.tiles, tally.undecided, tally.decidable);
  EXPECT_EQ(tally.wrong, 0u);
  EXPECT_LE(tally.undecided, tally.decidable / 50);
}

/// Arriola et al., appendix: M_BD, M_OBC and M_BC over [x_t | x_0]; ours is [x_0 | x_t].
TEST(BlockPattern, WithoutPrefixIsTheMaskOfThePaper) {
  std::size_t cases = 0, differences = 0;
  for (const std::uint32_t n : {1u, 5u, 16u, 30u, 32u})
    for (std::uint32_t block = 1; block <= n; ++block, ++cases) {
      BlockRows rows(1, 2 * n, vocabulary - 1);
      const std::vector<Made> samples = {test::flat(0, 0, n, block)};
      rows.fill(test::batch_of(samples, 1, 2 * n, test::random_tokens_of(samples, vocabulary, 1)),
                {});
      const ops::Pattern pattern = pattern_of(rows);
      const auto ours = [&](std::uint32_t i) { return static_cast<int>(i < n ? n + i : i - n); };
      for (std::uint32_t q = 0; q < 2 * n; ++q)
        for (std::uint32_t k = 0; k < 2 * n; ++k) {
          const bool x0_q = q >= n, x0_k = k >= n;
          const std::uint32_t block_q = (x0_q ? q - n : q) / block;
          const std::uint32_t block_k = (x0_k ? k - n : k) / block;
          const bool block_diagonal = block_q == block_k && x0_q == x0_k;
          const bool offset_block_causal = block_q > block_k && x0_k && !x0_q;
          const bool block_causal = block_q >= block_k && x0_k && x0_q;
          differences += (block_diagonal || offset_block_causal || block_causal) !=
                         pattern.allowed(0, ours(q), ours(k));
        }
    }
  std::printf("%zu block lengths, %zu differences\n", cases, differences);
  EXPECT_EQ(differences, 0u);
}

TEST(BlockRows, TokensPositionsAndLevelsStandWhereTheyBelong) {
  const std::vector<Made> samples = {
      {0, 3, {5, 6}, {5, 2}}, {0, 4, {6, 5}, {2, 1}}, {2, 0, {0, 12}, {0, 5}}};
  const auto tokens = test::random_tokens_of(samples, vocabulary, 3);
  BlockRows rows(3, 60, vocabulary - 1);
  rows.fill(test::batch_of(samples, 3, 60, tokens), {});
  const std::vector<Place> places = places_of(samples, 3, 60);
  std::vector<std::size_t> first(samples.size(), 0);
  for (std::size_t s = 1; s < samples.size(); ++s)
    first[s] = first[s - 1] + test::tokens_of({samples[s - 1]});
  std::map<std::int32_t, std::int32_t> masked;
  for (std::size_t m = 0; m < rows.masked().size(); ++m)
    masked[rows.masked()[m]] = rows.targets()[m];
  EXPECT_TRUE(std::is_sorted(rows.masked().begin(), rows.masked().end()));
  EXPECT_GT(masked.size(), 3u);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& p = places[i];
    const bool padding = p.kind == Place::Kind::padding;
    const std::int32_t token = padding ? 0 : tokens[first[p.sample] + p.token];
    const bool is_masked = masked.count(static_cast<std::int32_t>(i)) > 0;
    EXPECT_EQ(rows.tokens()[i], is_masked ? vocabulary - 1 : token) << i;
    if (is_masked) {
      EXPECT_EQ(p.kind, Place::Kind::noisy);
      EXPECT_EQ(masked[static_cast<std::int32_t>(i)], token);
    }
    EXPECT_EQ(rows.positions()[i], padding ? 0 : static_cast<std::int32_t>(p.token)) << i;
    std::int32_t level = 0;
    if (p.kind == Place::Kind::clean || p.kind == Place::Kind::noisy)
      level = p.token - samples[p.sample].prefix < samples[p.sample].length[0] ? 1 : 2;
    EXPECT_EQ(rows.levels()[i], level) << i;
  }
}

// ---- noise

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
  for (std::size_t b = 0; b < batch.sequences; ++b) {
    Drawn& row = drawn[batch.samples[b]];
    EXPECT_TRUE(row.tokens.empty()) << "row " << batch.samples[b] << " twice";
    const auto first = rows.tokens().begin() + static_cast<std::ptrdiff_t>(b * T);
    row.tokens.assign(first, first + static_cast<std::ptrdiff_t>(T));
  }
  std::size_t block = 0;
  for (const data::Piece& piece : batch.pieces)
    for (std::size_t l = 0; l < data::levels; ++l)
      for (std::uint32_t i = 0; i < piece.length[l]; i += piece.block[l])
        drawn[batch.samples[piece.row]].times[l].push_back(rows.blocks()[block++].t);
  EXPECT_EQ(block, rows.blocks().size());
}

DrawnRows drawn_by(const data::SampleSource& source, std::size_t ranks, std::size_t accumulation,
                   std::size_t steps, std::size_t first_step = 0) {
  constexpr std::size_t global = 8;
  data::ReaderOptions options{global / ranks / accumulation, source.positions()};
  options.seed = 3;
  options.accumulation = accumulation;
  DrawnRows drawn;
  BlockRows rows(options.sequences, options.length, 256);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    data::Reader reader(source, options, rank, ranks, first_step * accumulation);
    for (std::size_t m = first_step * accumulation; m < steps * accumulation; ++m)
      draw(reader.next(), rows, drawn);
  }
  return drawn;
}

TEST(Noise, IsTheSameOnAnyLayoutAndAfterResuming) {
  std::vector<data::Sample> samples(40);
  std::mt19937 generator(8);
  for (data::Sample& sample : samples)
    sample = {std::string(3 + generator() % 6, 'q'), std::string(2 + generator() % 8, 'p'),
              std::string(4 + generator() % 12, 'x'), ""};
  data::SampleRules rules;
  rules.question_tokens = 10, rules.plan_tokens = 12, rules.execution_tokens = 18;
  rules.execution_block = 4, rules.positions = 140;
  const auto tokenizer = data::open_tokenizer("bytes");
  const data::SampleSource source(samples, *tokenizer, rules);
  const DrawnRows alone = drawn_by(source, 1, 1, 6);
  ASSERT_EQ(alone.size(), 48u);
  for (const auto& [ranks, accumulation] :
       {std::pair{1, 4}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {1, 8}, {8, 1}})
    EXPECT_EQ(drawn_by(source, static_cast<std::size_t>(ranks),
                       static_cast<std::size_t>(accumulation), 6),
              alone)
        << ranks << " ranks, " << accumulation << " micro-steps";
  for (const auto& [row, drawn] : drawn_by(source, 2, 1, 6, 4)) EXPECT_EQ(drawn, alone.at(row));
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

}  // namespace
}  // namespace tern::objective::detail
